package krrlab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// TestScikitLearn compares predictions at τ = 1e-6 with those of scikit-learn's KernelRidge, for three solvers and
// one and four right-hand sides. They must agree to 1e-3 of the largest value. The short suite uses two kernels, and
// the longer ones use all.
func TestScikitLearn(t *testing.T) {
	script := filepath.Join("..", "experiments", "peers", "krr_sklearn.py")
	python := testkit.Python(t, "sklearn.kernel_ridge", "python3-sklearn")
	const n, testCount, d = 300, 50, 5
	for _, classes := range []int{0, 4} {
		x := pointsByFormat(n, d, 11)["float64"].(*points.Dense)
		testPoints := pointsByFormat(testCount, d, 12)["float64"].(*points.Dense)
		train := regression(x)
		if classes > 0 {
			train = classification(x, classes)
		}
		dir := t.TempDir()
		arrayFile := func(name string) string { return filepath.Join(dir, name+".npy") }
		y := newLab(t, train, Config{Kernel: gauss, Lambda: 1}).y
		_, columns := y.Dims()
		writeArray(t, arrayFile("x"), x.Data, n, d)
		writeArray(t, arrayFile("at"), testPoints.Data, testCount, d)
		writeArray(t, arrayFile("y"), y.RawMatrix().Data, n, columns)
		for _, k := range kernels[:suite.Scale(2, len(kernels), len(kernels))] { // Python is started for each
			spec := testkit.Must(kernel.ToSpec(k))
			number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
			args := []string{script, "--train", arrayFile("x"), "--target", arrayFile("y"), "--test", arrayFile("at"),
				"--out", arrayFile("p"), "--kernel", spec.Name, "--lambda", "0.02"}
			if spec.Sigma > 0 {
				args = append(args, "--sigma", number(spec.Sigma))
			} else {
				args = append(args, "--gamma", number(spec.Gamma), "--coef0", number(spec.Coef0), "--degree",
					strconv.Itoa(spec.Degree))
			}
			if output, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			want := mat.NewDense(testCount, columns, readArray(t, arrayFile("p")))
			for solver, preconditioner := range map[Solver]Preconditioner{PCG: Features{S: 100}, CG: nil, Direct: nil} {
				sol := mustSolve(t, train, Config{Kernel: k, Lambda: 0.02, Precond: preconditioner, Solver: solver,
					Tol: 1e-6, MaxIter: 5000})
				for _, inFloat64 := range []bool{false, true} {
					predicted := testkit.Must(sol.Model.Decision(t.Context(), testPoints,
						&model.Options{Float64: inFloat64}))
					if difference := relativeDifference(predicted, want); !(difference <= 1e-3) || !sol.Converged() {
						t.Errorf("%v, t=%d, %v: %s, predictions are %.3g apart", k, columns, solver, sol.Status,
							difference)
					}
				}
			}
		}
	}
}

// writeArray writes an array to an .npy file.
func writeArray(t *testing.T, name string, data []float64, shape ...int) {
	t.Helper()
	f := testkit.Must(os.Create(name))
	defer f.Close()
	testkit.OK(t, npy.Write(f, data, shape...))
}

// readArray returns the float64 numbers of an .npy file.
func readArray(t *testing.T, name string) []float64 {
	t.Helper()
	f := testkit.Must(os.Open(name))
	defer f.Close()
	_, data, err := npy.Read(f, 1<<30)
	testkit.OK(t, err)
	return data.([]float64)
}
