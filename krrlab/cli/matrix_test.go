package cli

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/npy"
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
	if err := npy.Write(&b, data, m, n); err != nil {
		t.Fatal(err)
	}
	return write(t, ".", name, b.String())
}

// TestPrecomputedK: a fit with K given predicts what one with the kernel does, from K(test, train); the model says that it
// holds no K, and what needs points or kernel is refused in one line.
func TestPrecomputedK(t *testing.T) {
	script, err := filepath.Abs(filepath.Join("..", "..", "experiments", "peers", "verify_model.py"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	const n, fresh = 60, 7
	at := func(i int) float64 { return float64(i*17%n)/10 + float64(i/n)/30 }
	k := func(i, j int) float64 { return math.Exp(-(at(i) - at(j)) * (at(i) - at(j)) / 2) }
	var train, in, y strings.Builder
	train.WriteString("x,y\n")
	y.WriteString("name,y\n")
	in.WriteString("x\n")
	for i := range n + fresh {
		if i >= n {
			fmt.Fprintf(&in, "%.17g\n", at(i))
			continue
		}
		fmt.Fprintf(&train, "%.17g,%g\n", at(i), 100+math.Sin(at(i)))
		fmt.Fprintf(&y, "row %d,%g\n", i, 100+math.Sin(at(i)))
	}
	write(t, dir, "train.csv", train.String())
	write(t, dir, "y.csv", y.String())
	write(t, dir, "in.csv", in.String())
	matrixFile(t, "K.npy", n, n, false, k)
	matrixFile(t, "K32.npy", n, n, true, k)
	matrixFile(t, "cross.npy", fresh, n, false, func(i, j int) float64 { return k(n+i, j) })
	matrixFile(t, "short.npy", fresh, n-1, false, func(i, j int) float64 { return k(n+i, j) })
	matrixFile(t, "off.npy", n, n, false, func(i, j int) float64 { return k(i, j) + float64(btoi(i == 3 && j == 9))/2 })
	matrixFile(t, "nan.npy", n, n, false, func(i, j int) float64 { return k(i, j) + math.Sqrt(-float64(btoi(i == 3 && j == 9))) })
	values := func(model, in string) (f []float64, out string) {
		t.Helper()
		code, out, errs := command(t, "predict", model, "--in", in, "--out", "p.csv")
		if code != exitOK {
			t.Fatalf("exit %d, %s", code, errs)
		}
		b, err := os.ReadFile("p.csv")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
			_, text, _ := strings.Cut(line, ",")
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			f = append(f, v)
		}
		return f, out
	}
	same := []string{"--lambda", "0.01", "--target", "y", "--holdout", "0.2", "--json", "r.json"}
	if code, _, errs := command(t, append([]string{"fit", "--train", "train.csv", "--sigma", "1", "--scale", "none", "--out", "x.krr"}, same...)...); code != exitOK {
		t.Fatal(errs)
	}
	want, _ := values("x.krr", "in.csv")
	rmse := report(t, "r.json")["rmse"].(float64)
	for _, file := range []string{"K.npy", "K32.npy"} {
		for _, flags := range [][]string{nil, {"--solver", "pcg", "--precond", "nystrom", "--features", "20", "--tol", "1e-8"}} {
			args := append(append([]string{"fit", "--train", "y.csv", "--kernel", "precomputed", "--matrix", file, "--out", "k.krr"}, same...), flags...)
			code, out, errs := command(t, args...)
			if code != exitOK || !strings.Contains(out, "not known to be positive semi-definite") || strings.Contains(out, "‖e‖_A") {
				t.Fatalf("%s: exit %d, %s%s", file, code, out, errs)
			}
			r := report(t, "r.json")
			if v := r["rmse"].(float64); math.Abs(v-rmse) > 1e-4 {
				t.Errorf("%s: RMSE %g, want %g", file, v, rmse)
			}
			got, _ := values("k.krr", "cross.npy")
			for i, v := range got {
				if math.Abs(v-want[i]) > 1e-4 {
					t.Errorf("%s %v: row %d: %g, want %g", file, flags, i, v, want[i])
				}
			}
		}
	}
	if m, err := model.Load("k.krr"); err != nil || m.Error != nil {
		t.Errorf("%v: %v", m, err)
	}
	if _, out, errs := command(t, "model", "info", "k.krr"); !strings.Contains(out, "none: n = 48 rows of a precomputed K, which predict takes as K(test, train), m×60") {
		t.Errorf("%s%s", out, errs)
	}
	if code, out, errs := command(t, "loo", "--train", "y.csv", "--target", "y", "--kernel", "precomputed", "--matrix", "K.npy", "--lambda", "0.01", "--json", "l.json"); code != exitOK {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	fit := func(flags ...string) []string {
		return append([]string{"fit", "--train", "y.csv", "--target", "y", "--kernel", "precomputed"}, flags...)
	}
	for want, args := range map[string][]string{
		"want K in a .npy file":          fit(),
		"goes with --kernel precomputed": {"fit", "--train", "y.csv", "--matrix", "K.npy"},
		"--sigma does not go with":       fit("--matrix", "K.npy", "--sigma", "1"),
		"--test does not go with":        fit("--matrix", "K.npy", "--test", "y.csv"),
		"leaves only λ":                  fit("--matrix", "K.npy", "--tune"),
		"no random features":             fit("--matrix", "K.npy", "--solver", "pcg", "--precond", "features"),
		"entry (9, 3) is":                fit("--matrix", "off.npy"),
		"entry (3, 9) is NaN":            fit("--matrix", "nan.npy"),
		"K is 7×60":                      fit("--matrix", "cross.npy"),
		"y.csv: npy: not an array":       fit("--matrix", "y.csv"),
		"takes 28.8 kB, the limit is":    fit("--matrix", "K.npy", "--memory", "20kB"),
		"want a target for each row; if its first line is a header, say --header yes": {"fit", "--train", write(t, ".", "more.csv", y.String()+"row,3\n"), "--target", "y", "--kernel", "precomputed", "--matrix", "K.npy"},
		"K has 60 rows, and few.csv has":                                              {"fit", "--train", write(t, ".", "few.csv", "y\n1\n2\n3\n"), "--target", "y", "--kernel", "precomputed", "--matrix", "K.npy", "--n", "50"},
		"has 59 columns, the K":                                                       {"predict", "k.krr", "--in", "short.npy"},
		"in.csv: npy: not an array":                                                   {"predict", "k.krr", "--in", "in.csv"},
		"it has no bounds":                                                            {"predict", "k.krr", "--in", "cross.npy", "--bound"},
		"holds no K: fit with --holdout":                                              {"predict", "k.krr", "--in", "cross.npy", "--interval", "90%", "--method", "jackknife+"},
		"which its file does not have":                                                {"verify", "k.krr", "--train", "y.csv"},
		"the model is of a precomputed K":                                             {"fit", "--train", "train.csv", "--warm", "k.krr"},
	} {
		if code, out, errs := command(t, args...); code == exitOK || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, want %q: %s%s", args, code, want, out, errs)
		}
	}
	if t.Failed() {
		return
	}
	python := testkit.Python(t, "numpy", "python3-numpy")
	for want, args := range map[string][]string{
		"residual ": {"--matrix", "K32.npy"}, "refused: the K of the model is not in its file": nil, "refused: k.krr: residual": {"--matrix", "wrong.npy"},
	} {
		matrixFile(t, "wrong.npy", n, n, false, func(i, j int) float64 { return k(i, j) + 0.1 })
		out, err := exec.CommandContext(t.Context(), python, append([]string{script, "k.krr", "y.csv"}, args...)...).CombinedOutput()
		if (err == nil) != (want == "residual ") || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
}
