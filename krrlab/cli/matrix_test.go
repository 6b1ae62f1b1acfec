package cli

import (
	"bytes"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/model"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// writeMatrix writes a rows×columns array with the entries f(i, j), of type float64 or float32, to a .npy file in the
// working directory.
func writeMatrix[T float32 | float64](t *testing.T, name string, rows, columns int, f func(i, j int) T) {
	t.Helper()
	entries := make([]T, rows*columns)
	for k := range entries {
		entries[k] = f(k/columns, k%columns)
	}
	var file bytes.Buffer
	testkit.OK(t, npy.Write(&file, entries, rows, columns))
	writeFile(t, ".", name, file.String())
}

// TestPrecomputedK checks fits to a given kernel matrix K. Their test errors and their predictions from the matrix
// K(test, train) must agree with a fit that evaluates the kernel. The model file must say that it does not contain K.
// Flags that need points or a kernel function, and matrices that are not symmetric, not finite or of the wrong shape,
// are refused with one line.
func TestPrecomputedK(t *testing.T) {
	verifier := testkit.Must(filepath.Abs(filepath.Join("..", "..", "experiments", "peers", "verify_model.py")))
	const n, newRows = 60, 7
	point := func(i int) float64 { return float64(i*17%n)/10 + float64(i/n)/30 }
	kernel := func(i, j int) float64 { return math.Exp(-(point(i) - point(j)) * (point(i) - point(j)) / 2) }
	targets := "name,y\n" + generateLines(n, func(i int) string {
		return fmt.Sprintf("row %d,%g\n", i,
			100+math.Sin(point(i)))
	})
	enterTempFolder(t, map[string]string{
		"train.csv": "x,y\n" + generateLines(n, func(i int) string {
			return fmt.Sprintf("%.17g,%g\n", point(i), 100+math.Sin(point(i)))
		}),
		"in.csv": "x\n" + generateLines(newRows, func(i int) string { return fmt.Sprintf("%.17g\n", point(n+i)) }),
		"y.csv":  targets, "more.csv": targets + "row,3\n", "few.csv": "y\n1\n2\n3\n",
	})
	// withEntry returns the kernel with v as the entry (3, 9), without the symmetric one.
	withEntry := func(v float64) func(i, j int) float64 {
		return func(i, j int) float64 {
			if i == 3 && j == 9 {
				return v
			}
			return kernel(i, j)
		}
	}
	writeMatrix(t, "K.npy", n, n, kernel)
	writeMatrix(t, "K32.npy", n, n, func(i, j int) float32 { return float32(kernel(i, j)) })
	writeMatrix(t, "cross.npy", newRows, n, func(i, j int) float64 { return kernel(n+i, j) })
	writeMatrix(t, "short.npy", newRows, n-1, func(i, j int) float64 { return kernel(n+i, j) })
	writeMatrix(t, "off.npy", n, n, withEntry(2))
	writeMatrix(t, "nan.npy", n, n, withEntry(math.NaN()))
	predict := func(model, in string) string {
		t.Helper()
		runScript(t, "$ predict --out p.csv "+model+" --in "+in)
		return string(readFile(t, "p.csv"))
	}
	runScript(t, "$ fit --train train.csv --sigma 1 --scale none --out x.krr --lambda 0.01 --target y --holdout 0.2 "+
		"--json r.json")
	want, rmse := predict("x.krr", "in.csv"), readReport(t, "r.json")["rmse"].(float64)
	for _, flags := range []string{"matrix=K.npy", "matrix=K32.npy",
		`matrix=K.npy --solver pcg --precond "nystrom features=20" --tol 1e-8`,
		`matrix=K32.npy --solver pcg --precond "nystrom features=20" --tol 1e-8`} {
		runScript(t, "$ fit --train y.csv --kernel precomputed --out k.krr --lambda 0.01 --target y --holdout 0.2 "+
			"--json r.json --kernel "+flags+
			"\nnot known to be positive semi-definite\n!‖e‖_A")
		testkit.Near(t, readReport(t, "r.json")["rmse"].(float64), rmse, 1e-4, flags)
		if difference := maxPredictionDifference(t, predict("k.krr", "cross.npy"), want,
			newRows); !(difference <= 1e-4) {
			t.Errorf("%s: predictions differ by %g from those of a fit that evaluates the kernel", flags, difference)
		}
	}
	if m, err := model.Load("k.krr"); err != nil || m.ErrorBounds != nil {
		t.Errorf("want a model without error bounds: %v, error %v", m, err)
	}
	runScript(t, strings.ReplaceAll(`
$ model info k.krr
	none: n = 48 rows of a precomputed K, which predict takes as K(test, train), m×60
$ loo --train y.csv --target y --kernel "precomputed matrix=K.npy" --lambda 0.01 --json l.json
2$ FIT
	want K in a .npy file
2$ fit --train y.csv --kernel "gaussian matrix=K.npy"
	goes with --kernel precomputed
2$ FIT --kernel matrix=K.npy --sigma 1
	--kernel matrix and --sigma exclude
2$ FIT --kernel matrix=K.npy --test y.csv
	--kernel matrix and --test exclude
2$ FIT --kernel matrix=K.npy --tune
	--kernel matrix and --tune exclude
2$ FIT --kernel matrix=K.npy --solver pcg --precond features
	--kernel matrix and --precond features exclude
2$ FIT --kernel matrix=K.npy --solver pcg --precond "features features=9"
	--kernel matrix and --precond features exclude
1$ FIT --kernel matrix=off.npy
	entry (9, 3) is
1$ FIT --kernel matrix=nan.npy
	entry (3, 9) is NaN
1$ FIT --kernel matrix=cross.npy
	K is 7×60
1$ FIT --kernel matrix=y.csv
	y.csv: npy: not an array
1$ FIT --kernel matrix=K.npy --memory 20kB
	would take 28.8 kB of memory, and 20 kB of 20 kB are free: allow more by --memory
1$ fit --train more.csv --target y --kernel "precomputed matrix=K.npy"
	want a target for each row; if its first line is a header, say --format header=yes
1$ fit --train few.csv --target y --kernel "precomputed matrix=K.npy" --n 50
	K has 60 rows, and few.csv has
1$ predict k.krr --in short.npy
	has 59 columns, the K
1$ predict k.krr --in in.csv
	in.csv: npy: not an array
1$ predict k.krr --in cross.npy --bound
	it has no bounds
1$ predict k.krr --in cross.npy --interval 90% --method jackknife+
	holds no K: fit with --holdout
1$ verify k.krr --train y.csv
	which its file does not have`, "FIT", "fit --train y.csv --target y --kernel precomputed"))
	if t.Failed() {
		return
	}
	python := testkit.Python(t, "numpy", "python3-numpy")
	for want, args := range map[string][]string{
		// The key is the text that the independent verifier in NumPy must print; all but "residual " are failures.
		"residual ": {"--matrix", "K32.npy"},
		"refused: the K of the model is not in its file": nil,
		"refused: k.krr: residual":                       {"--matrix", "wrong.npy"},
	} {
		writeMatrix(t, "wrong.npy", n, n, func(i, j int) float64 { return kernel(i, j) + 0.1 })
		out, err := exec.CommandContext(t.Context(), python,
			append([]string{verifier, "k.krr", "y.csv"}, args...)...).CombinedOutput()
		if (err == nil) != (want == "residual ") || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
}
