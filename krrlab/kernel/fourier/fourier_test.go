package fourier

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// pointSets returns sets of points in the box of side 1 in d dimensions: evenly distributed, in clusters, on a line,
// with duplicates, and with an outlier.
func pointSets(n, d int, seed uint64) map[string]*points.Dense {
	g := rng.New(seed)
	sets := map[string]*points.Dense{}
	for _, name := range []string{"even", "clusters", "line", "duplicates", "outlier"} {
		x := points.NewDense(n, d, nil)
		g.Sub(name).Float64s(x.Data, 0)
		for i := range n {
			row := x.Row(i)
			for a := range row {
				switch name {
				case "clusters":
					row[a] = float64(i%3)/2 + 0.02*row[a]
				case "line":
					row[a] = row[0]
				case "duplicates":
					row[a] = math.Floor(5*row[a]) / 5
				case "outlier":
					row[a] = 0.2 * row[a]
				}
			}
		}
		if name == "outlier" {
			for a := range d {
				x.Row(n - 1)[a] = 1
			}
		}
		sets[name] = x
	}
	return sets
}

// features returns Φ, n×M, computed from its definition, one point and mode at a time.
func features(s *Series, x *points.Dense) *mat.Dense {
	phi := mat.NewDense(x.N, len(s.modes), nil)
	for i := range x.N {
		for k, m := range s.modes {
			v := m.root
			for a := range s.axes {
				theta := 2 * math.Pi * s.axes[a].spacing * (x.Row(i)[a] - s.axes[a].low)
				sin, cos := math.Sincos(float64(m.index[a]/2) * theta)
				v *= []float64{cos, sin}[m.index[a]%2]
			}
			phi.Set(i, k, v)
		}
	}
	return phi
}

// TestEntryErrorBound checks that no entry of K̃ differs from K by more than the bound, for several accuracies, and
// that a series with fewer modes violates the bound.
func TestEntryErrorBound(t *testing.T) {
	problems := 0
	for d := 1; d <= 3; d++ {
		for name, x := range pointSets(suite.Scale(25, 60, 60), d, 1) {
			kernels := []kernel.Kernel{kernel.Gaussian{Sigma: 0.15}, kernel.Matern52{Sigma: 1},
				kernel.Gaussian{Sigma: 0.4}, kernel.Gaussian{Sigma: 2}}
			// In three dimensions the narrowest kernel and the smaller errors need too many modes.
			for _, k := range kernels[max(0, d-2):] {
				for _, accuracy := range []float64{1e-3, 1e-6, 1e-11}[:4-max(d, 2)] {
					if _, ok := k.(kernel.Matern52); ok {
						accuracy = math.Pow(accuracy, 1/float64(d)) // the modes grow as a power of 1/accuracy
					}
					checkEntryErrorBound(t, fmt.Sprintf("d = %d, %s, %v, %g", d, name, k, accuracy), k, x, accuracy)
					problems++
				}
			}
		}
	}
	t.Logf("%d problems", problems)
}

// checkEntryErrorBound compares a series with K, and the same series without a quarter of its modes, or without half of
// them for a Density.
func checkEntryErrorBound(t *testing.T, name string, k kernel.Kernel, x *points.Dense, accuracy float64) {
	t.Helper()
	s := testkit.Must(New(k, Options{EntryError: accuracy, MaxModes: 30_000}, x))
	exact := testkit.KernelMatrix(k, x)
	worst := func(s *Series) (worst float64) {
		phi := features(s, x)
		var approx mat.Dense
		approx.Mul(phi, phi.T())
		for i := range x.N {
			for j := range x.N {
				worst = max(worst, math.Abs(approx.At(i, j)-exact.At(i, j)))
			}
		}
		return worst
	}
	const rounding = 1e-13 // of an entry of ΦΦᵀ, a sum of up to 30,000 products
	if deviation := worst(s); deviation > s.EntryError()+rounding || s.EntryError() > accuracy {
		t.Errorf("%s: error %.3g, bound %.3g", name, deviation, s.EntryError())
	}
	truncated := *s
	fraction := 0.75
	if _, ok := k.(Density); ok {
		fraction = 0.5
	}
	truncated.modes = s.modes[:int(fraction*float64(len(s.modes)-1))+1]
	if deviation := worst(&truncated); deviation <= s.EntryError() && len(s.modes) > 1 {
		t.Errorf("%s: %d of %d modes have an error of %.3g, want more than the bound %.3g", name, len(truncated.modes),
			len(s.modes), deviation, s.EntryError())
	}
}

// TestSolve compares coefficients, decision values, ln det and the statistical dimension with dense linear algebra,
// with weights and several targets, by a factorization and by conjugate gradients.
func TestSolve(t *testing.T) {
	n := suite.Scale(150, 500, 2000)
	for d := 1; d <= 3; d++ {
		for name, x := range pointSets(n, d, 2) {
			if suite.Small() && name != "even" && name != "outlier" {
				continue
			}
			for _, weighted := range []bool{false, true} {
				for _, direct := range []bool{true, false} {
					if suite.Small() && d == 3 && (direct || !weighted || name != "even") { // thousands of modes
						continue
					}
					t.Run(fmt.Sprintf("%d %s %v %v", d, name, weighted, direct), func(t *testing.T) {
						opts := Options{}
						if !direct {
							// The exact block has fewer than all modes, so the preconditioner is not exact.
							opts.DirectModes, opts.exactModes = 1, []int{12, 150, 1500}[d-1]
						}
						checkSolve(t, x, kernel.Gaussian{Sigma: []float64{0.1, 0.3, 1.2}[d-1]}, weighted, opts)
					})
				}
			}
		}
	}
}

// checkSolve solves a problem with two targets and compares every result with dense linear algebra. The tolerances
// allow for the EntryError of the series, about 10⁻¹³ of an entry, times the condition of the problem.
func checkSolve(t *testing.T, x *points.Dense, k kernel.Kernel, weighted bool, opts Options) {
	const lambda = 0.01
	ctx, n := t.Context(), x.N
	s := testkit.Must(New(k, opts, x))
	y := mat.NewDense(n, 2, nil)
	rng.New(3).Normals(y.RawMatrix().Data, 0)
	kernelMatrix := testkit.KernelMatrix(k, x)
	var weights []float64
	if weighted {
		weights = make([]float64, n)
		for i := range weights {
			weights[i] = 1 + float64(i%4)
		}
		for i := range n {
			for j := i; j < n; j++ {
				kernelMatrix.SetSym(i, j, kernelMatrix.At(i, j)*math.Sqrt(weights[i]*weights[j]))
			}
			for j := range 2 {
				y.Set(i, j, y.At(i, j)*math.Sqrt(weights[i]))
			}
		}
	}
	scaled := mat.DenseCopyOf(y)
	if weighted {
		scaled.Apply(func(i, _ int, v float64) float64 { return v * math.Sqrt(weights[i]) }, y)
	}
	normal, b, err := s.NormalEquations(ctx, x, weights, scaled)
	testkit.OK(t, err)
	factored := testkit.Must(normal.Factor(ctx, lambda))
	beta, iterations, err := factored.Solve(ctx, b, 1e-13)
	testkit.OK(t, err)
	if predicted := s.Work(n, 2, lambda).Iterations; !s.Direct() && (iterations < 2 || predicted < 2) {
		t.Errorf("%d iterations, predicted %d: the preconditioner must not be exact here", iterations, predicted)
	}
	// EvalProject computes the same values and their projection in one pass.
	updated := mat.NewDense(n, 2, nil)
	projected := testkit.Must(s.EvalProject(ctx, x, beta, func(i, j int, value float64) float64 {
		updated.Set(i, j, value)
		return scaled.At(i, j)
	}))
	if !mat.EqualApprox(projected, b, 1e-9*mat.Norm(b, 2)) {
		t.Error("EvalProject and NormalEquations disagree")
	}
	values := testkit.Must(s.Eval(ctx, x, beta))
	if !mat.Equal(values, updated) {
		t.Error("EvalProject and Eval disagree")
	}
	for i := range n {
		kernelMatrix.SetSym(i, i, kernelMatrix.At(i, i)+lambda)
	}
	var factor mat.Cholesky
	if !factor.Factorize(kernelMatrix) {
		t.Fatal("K+λI is not definite")
	}
	var want, fitted mat.Dense
	testkit.OK(t, factor.SolveTo(&want, y))
	fitted.Scale(-lambda, &want)
	fitted.Add(y, &fitted) // W^½f = W^½y − λĉ
	worst := 0.0
	for i := range n {
		root := 1.0
		if weighted {
			root = math.Sqrt(weights[i])
		}
		for j := range 2 {
			worst = max(worst, math.Abs(root*values.At(i, j)-fitted.At(i, j)))
		}
	}
	if worst > 1e-8*mat.Norm(&fitted, 2) {
		t.Errorf("%d modes, %d iterations: fitted values have an error of %.3g", s.Modes(), iterations, worst)
	}
	if opts.DirectModes == 1 {
		testkit.Fails(t, factored.Leverages(ctx, x, beta, nil), "are more than the 1 that are factored")
		return
	}
	if deviation := math.Abs(factored.LogDet - factor.LogDet()); deviation > 1e-7*float64(n) {
		t.Errorf("ln det %.10g, want %.10g", factored.LogDet, factor.LogDet())
	}
	var inverse mat.SymDense
	testkit.OK(t, factor.InverseTo(&inverse))
	statDim := float64(n) - lambda*mat.Trace(&inverse)
	testkit.OK(t, factored.Leverages(ctx, x, beta, func(i int, row []float64, h float64) {
		weight := 1.0
		if weighted {
			weight = weights[i]
		}
		if want := 1 - lambda*inverse.At(i, i); math.Abs(weight*h-want) > 1e-9 {
			t.Errorf("point %d: leverage %.10g, want %.10g", i, weight*h, want)
		}
		if want := values.At(i, 1); math.Abs(row[1]-want) > 1e-9*mat.Norm(&fitted, 2) {
			t.Errorf("point %d: value %.10g, want %.10g", i, row[1], want)
		}
	}))
	if got := testkit.Must(factored.StatDim(t.Context())); !(math.Abs(got-statDim) <= 1e-6*statDim) {
		t.Errorf("s_λ = %.8g, want %.8g", got, statDim)
	}
}

// TestNewErrors checks that the error names the reason if there is no series for a kernel or points, and that identical
// points have one.
func TestNewErrors(t *testing.T) {
	x := points.NewDense(3, 2, []float64{0, 0, 1, 1, 0, 1})
	wide := points.NewDense(3, 4, nil)
	laplacian := testkit.ErrOf(New(kernel.Laplacian{Sigma: 1}, Options{}, x))
	testkit.Fails(t, laplacian, "take the Gaussian kernel, matern52 or another method (a kernel of your own needs the "+
		"methods of fourier.Density)")
	testkit.Fails(t, testkit.ErrOf(New(kernel.Gaussian{Sigma: 1e-4}, Options{}, x)),
		"sparse tiles suit a narrow kernel")
	testkit.Fails(t, testkit.ErrOf(New(kernel.Gaussian{Sigma: 1}, Options{}, wide)), "4 dimensions")
	// In the plane matern52 has more than 8,000 modes at any length scale. On a line a narrow one has too many.
	few := Options{MaxModes: 8000}
	testkit.Fails(t, testkit.ErrOf(New(kernel.Matern52{Sigma: 1000}, few, x)), "takes more than 8000 modes in 2 dimensions "+
		"for a Fourier series with an error of 1e-06, however wide it is: take the Gaussian kernel")
	testkit.Fails(t, testkit.ErrOf(New(kernel.Matern52{Sigma: 1e-6}, few, points.NewDense(2, 1, []float64{0, 1}))),
		"the kernel is narrow for the box of the points")
	identical := testkit.Must(New(kernel.Gaussian{Sigma: 1}, Options{}, points.NewDense(3, 2, nil))) // a box of side 0
	if identical.Modes() < 1 || identical.EntryError() > 1e-13 {
		t.Errorf("identical points: %d modes, error %g", identical.Modes(), identical.EntryError())
	}
}
