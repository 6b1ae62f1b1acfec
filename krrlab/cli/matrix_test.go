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

// matrixFile writes an m×n array whose entry (i, j) is f(i, j).
func matrixFile(t *testing.T, name string, m, n int, single bool, f func(i, j int) float64) string {
	t.Helper()
	var data any
	wide, narrow := make([]float64, m*n), make([]float32, m*n)
	for k := range wide {
		wide[k] = f(k/n, k%n)
		narrow[k] = float32(wide[k])
	}
	if data = wide; single {
		data = narrow
	}
	var b bytes.Buffer
	testkit.OK(t, npy.Write(&b, data, m, n))
	return write(t, ".", name, b.String())
}

// TestPrecomputedK: a fit with K given predicts what one with the kernel does, from K(test, train); the model says that
// it holds no K, and what needs points or kernel is refused in one line.
func TestPrecomputedK(t *testing.T) {
	verifier := testkit.Must(filepath.Abs(filepath.Join("..", "..", "experiments", "peers", "verify_model.py")))
	const n, fresh = 60, 7
	at := func(i int) float64 { return float64(i*17%n)/10 + float64(i/n)/30 }
	k := func(i, j int) float64 { return math.Exp(-(at(i) - at(j)) * (at(i) - at(j)) / 2) }
	y := "name,y\n" + lines(n, func(i int) string { return fmt.Sprintf("row %d,%g\n", i, 100+math.Sin(at(i))) })
	files(t, map[string]string{
		"train.csv": "x,y\n" + lines(n, func(i int) string {
			return fmt.Sprintf("%.17g,%g\n", at(i), 100+math.Sin(at(i)))
		}),
		"in.csv": "x\n" + lines(fresh, func(i int) string { return fmt.Sprintf("%.17g\n", at(n+i)) }),
		"y.csv":  y, "more.csv": y + "row,3\n", "few.csv": "y\n1\n2\n3\n",
	})
	spoiled := func(v float64) func(i, j int) float64 {
		return func(i, j int) float64 {
			if i == 3 && j == 9 {
				return v
			}
			return k(i, j)
		}
	}
	matrixFile(t, "K.npy", n, n, false, k)
	matrixFile(t, "K32.npy", n, n, true, k)
	matrixFile(t, "cross.npy", fresh, n, false, func(i, j int) float64 { return k(n+i, j) })
	matrixFile(t, "short.npy", fresh, n-1, false, func(i, j int) float64 { return k(n+i, j) })
	matrixFile(t, "off.npy", n, n, false, spoiled(2))
	matrixFile(t, "nan.npy", n, n, false, spoiled(math.NaN()))
	predicted := func(model, in string) string {
		t.Helper()
		script(t, "$ predict --out p.csv "+model+" --in "+in)
		return string(read(t, "p.csv"))
	}
	script(t, "$ fit --train train.csv --sigma 1 --scale none --out x.krr --lambda 0.01 --target y --holdout 0.2 "+
		"--json r.json")
	want, rmse := predicted("x.krr", "in.csv"), report(t, "r.json")["rmse"].(float64)
	for _, flags := range []string{"K.npy", "K32.npy", "K.npy --solver pcg --precond nystrom --features 20 --tol 1e-8",
		"K32.npy --solver pcg --precond nystrom --features 20 --tol 1e-8"} {
		script(t, "$ fit --train y.csv --kernel precomputed --out k.krr --lambda 0.01 --target y --holdout 0.2 "+
			"--json r.json --matrix "+flags+
			"\nnot known to be positive semi-definite\n!‖e‖_A")
		testkit.Near(t, report(t, "r.json")["rmse"].(float64), rmse, 1e-4, flags)
		if far := farthest(t, predicted("k.krr", "cross.npy"), want, fresh); !(far <= 1e-4) {
			t.Errorf("%s: predictions are off by %g", flags, far)
		}
	}
	if m, err := model.Load("k.krr"); err != nil || m.Error != nil {
		t.Errorf("%v: %v", m, err)
	}
	script(t, strings.ReplaceAll(`
$ model info k.krr
	none: n = 48 rows of a precomputed K, which predict takes as K(test, train), m×60
$ loo --train y.csv --target y --kernel precomputed --matrix K.npy --lambda 0.01 --json l.json
2$ FIT
	want K in a .npy file
2$ fit --train y.csv --matrix K.npy
	goes with --kernel precomputed
2$ FIT --matrix K.npy --sigma 1
	--matrix and --sigma exclude
2$ FIT --matrix K.npy --test y.csv
	--matrix and --test exclude
2$ FIT --matrix K.npy --tune
	--matrix and --tune exclude
2$ FIT --matrix K.npy --solver pcg --precond features
	--matrix and --precond features exclude
1$ FIT --matrix off.npy
	entry (9, 3) is
1$ FIT --matrix nan.npy
	entry (3, 9) is NaN
1$ FIT --matrix cross.npy
	K is 7×60
1$ FIT --matrix y.csv
	y.csv: npy: not an array
1$ FIT --matrix K.npy --memory 20kB
	takes 28.8 kB, the limit is
1$ fit --train more.csv --target y --kernel precomputed --matrix K.npy
	want a target for each row; if its first line is a header, say --format header=yes
1$ fit --train few.csv --target y --kernel precomputed --matrix K.npy --n 50
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
		"residual ": {"--matrix", "K32.npy"}, "refused: the K of the model is not in its file": nil,
		"refused: k.krr: residual": {"--matrix", "wrong.npy"},
	} {
		matrixFile(t, "wrong.npy", n, n, false, func(i, j int) float64 { return k(i, j) + 0.1 })
		out, err := exec.CommandContext(t.Context(), python,
			append([]string{verifier, "k.krr", "y.csv"}, args...)...).CombinedOutput()
		if (err == nil) != (want == "residual ") || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
}
