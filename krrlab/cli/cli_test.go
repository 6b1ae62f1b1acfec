package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
)

// command runs one command line and returns its exit code and what it printed.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return commandContext(t, context.Background(), args...)
}

func commandContext(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(ctx, args, Env{
		Stdout: &out, Stderr: &errs, Version: "test",
		DataDirs: []string{filepath.Join(t.TempDir(), "cache")},
		UseBLAS:  func(context.Context, string) (string, error) { accel.Use(nil); return "", nil },
	})
	return code, out.String(), errs.String()
}

// refused runs the command lines of the common arguments and those of each case but its last one: they must end with
// the exit code, and with one line of error alone, which has that last one in it.
func refused(t *testing.T, code int, common []string, cases ...[]string) {
	t.Helper()
	for _, c := range cases {
		n := len(c) - 1
		got, out, errs := command(t, slices.Concat(common, c[:n])...)
		if got != code || out != "" || !strings.Contains(errs, c[n]) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q, %q; want exit %d with %q in one line", c[:n], got, out, errs, code, c[n])
		}
	}
}

// staged runs the command of a stage, decodes the JSON that it writes, looks for its picture, and returns what it prints.
func staged(t *testing.T, into any, args ...string) string {
	t.Helper()
	js, svg := filepath.Join(t.TempDir(), "s.json"), filepath.Join(t.TempDir(), "s.svg")
	code, out, errs := command(t, append(args, "--json", js, "--plot", svg)...)
	if code != exitOK || errs != "" {
		t.Fatalf("%v: exit %d, %s%s", args, code, out, errs)
	}
	if err := json.Unmarshal(read(t, js), into); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(read(t, svg)), "<svg") {
		t.Errorf("%v: no picture", args)
	}
	return out
}

// read returns what is in a file, or ends the test.
func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write puts a file into dir and returns its path.
func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// table returns n rows of a csv file: three features and y = sin x₀ + x₁x₂ + noise, or
// a label.
func table(n int, classes []string, header bool) string {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	var b strings.Builder
	if header {
		b.WriteString("a,b,c,y\n")
	}
	for range n {
		x := [3]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		y := math.Sin(x[0]) + x[1]*x[2]
		fmt.Fprintf(&b, "%.6g,%.6g,%.6g,", x[0], x[1], x[2])
		if classes == nil {
			fmt.Fprintf(&b, "%.6g\n", y+0.01*rng.NormFloat64())
			continue
		}
		c := int(math.Floor((math.Tanh(y) + 1) / 2 * float64(len(classes))))
		fmt.Fprintln(&b, classes[min(c, len(classes)-1)])
	}
	return b.String()
}

// report reads the JSON that fit wrote.
func report(t *testing.T, path string) map[string]any {
	t.Helper()
	b := read(t, path)
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestReportFields pins the names that scripts rely on.
func TestReportFields(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(150, nil, true))
	test := write(t, dir, "test.csv", table(50, nil, true))
	js := filepath.Join(dir, "r.json")
	code, _, errs := command(t, "fit", "--train", train, "--test", test, "--target", "y", "--solver", "pcg", "--features", "100",
		"--sigma", "2", "--lambda", "0.01", "--json", js)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	r := report(t, js)
	for _, name := range []string{"dataset", "task", "n", "d", "t", "kernel", "lambda", "lambda_p", "s", "solver", "storage", "blas",
		"threads", "seed", "iterations", "status", "true_residual", "kappa", "test_error", "rmse", "relative_error", "r2", "peak_bytes",
		"seconds", "history"} {
		if _, ok := r[name]; !ok {
			t.Errorf("report has no %q", name)
		}
	}
	for _, name := range []string{"load", "kernel", "features", "factor", "solve", "predict", "total"} {
		if v, ok := r["seconds"].(map[string]any)[name].(float64); !ok || v < 0 {
			t.Errorf("seconds.%s is %v", name, v)
		}
	}
	if r["n"] != 150.0 || r["d"] != 3.0 || r["t"] != 1.0 || r["s"] != 100.0 || r["task"] != "regression" || r["status"] != "converged" {
		t.Errorf("report is off: %v", r)
	}
	if v := r["true_residual"].(float64); !(v > 0 && v <= 1e-5) {
		t.Errorf("true residual %g, asked 1e-5", v)
	}
	if v := r["r2"].(float64); v < 0.9 {
		t.Errorf("R² = %g", v)
	}
	if r["test_error"] != nil {
		t.Errorf("regression has a test_error: %v", r["test_error"])
	}
}

// TestFitPredict goes from files to predictions, for every solver and storage, and
// finds the same predictions.
func TestFitPredict(t *testing.T) {
	dir := t.TempDir()
	labels := []string{"low", "mid", "high"}
	train := write(t, dir, "train.csv", table(200, labels, false))
	test := write(t, dir, "test.csv", table(60, labels, false))
	var want string
	for _, args := range [][]string{
		{"--solver", "direct"},
		{"--solver", "cg"},
		{"--solver", "pcg", "--features", "64", "--form", "L"},
		{"--solver", "pcg", "--features", "64", "--form", "Linv", "--storage", "float64"},
		{"--solver", "pcg", "--features", "64", "--form", "U", "--storage", "float32"},
		{"--solver", "pcg", "--features", "64", "--form", "eigen", "--storage", "recompute", "--lambda-p", "0.1"},
		{"--solver", "pcg", "--features", "64", "--repeat", "3", "--orthogonal"},
	} {
		m, pred := filepath.Join(dir, "m.krr"), filepath.Join(dir, "pred.csv")
		args = append([]string{"fit", "--train", train, "--test", test, "--sigma", "1.5", "--lambda", "0.05", "--tol", "1e-6", "--out", m}, args...)
		code, out, errs := command(t, args...)
		if code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, errs)
		}
		if !strings.Contains(out, "converged") && !strings.Contains(out, "solved") || !strings.Contains(out, "test") || errs != "" {
			t.Errorf("%v printed\n%s%s", args, out, errs)
		}
		if code, _, errs := command(t, "predict", "--model", m, "--in", test, "--out", pred); code != 0 {
			t.Fatalf("predict: exit %d: %s", code, errs)
		}
		b := read(t, pred)
		got := string(b)
		if want == "" {
			want = got
			if lines := strings.Split(got, "\n"); lines[0] != "row,prediction" || len(lines) != 62 || !strings.HasPrefix(lines[1], "0,") {
				t.Errorf("predictions are\n%s", got)
			}
			for _, l := range labels {
				if !strings.Contains(got, ","+l+"\n") {
					t.Errorf("nothing is predicted %q", l)
				}
			}
		}
		if got != want {
			t.Errorf("%v: predictions differ from the direct solve's", args)
		}
	}
}

// TestBadInput checks that every bad input gets one line that says what and where,
// the right exit code, and no file.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string { return write(t, dir, name, content) }
	good := file("good.csv", table(40, nil, false))
	var gz bytes.Buffer
	zw := gzip.NewWriter(&gz)
	zw.Write([]byte(table(400, nil, false)))
	zw.Close()
	rows := strings.Split(table(40, nil, false), "\n")
	row := func(i int, s string) string {
		r := append([]string(nil), rows...)
		r[i] = s
		return strings.Join(r, "\n")
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"no data", []string{"fit"}, 2, []string{"--data", "--train"}},
		{"both", []string{"fit", "--data", "mnist", "--train", good}, 2, []string{"exclude"}},
		{"flag", []string{"fit", "--no-such"}, 2, []string{"no-such"}},
		{"command", []string{"fti"}, 2, []string{"fti"}},
		{"argument", []string{"fit", "a.csv"}, 2, []string{"a.csv"}},
		{"number", []string{"fit", "--train", good, "--lambda", "x"}, 2, []string{"lambda"}},
		{"lambda", []string{"fit", "--train", good, "--lambda", "0"}, 2, []string{"lambda", "positive"}},
		{"lambda-p", []string{"fit", "--train", good, "--lambda-p", "-1"}, 2, []string{"lambda-p"}},
		{"lambda nan", []string{"fit", "--train", good, "--lambda", "nan"}, 2, []string{"lambda"}},
		{"sigma", []string{"fit", "--train", good, "--sigma", "0"}, 2, []string{"sigma"}},
		{"tol", []string{"fit", "--train", good, "--tol", "0"}, 2, []string{"tol"}},
		{"tol 1", []string{"fit", "--train", good, "--tol", "1"}, 2, []string{"tol"}},
		{"features 0", []string{"fit", "--train", good, "--features", "0"}, 2, []string{"features"}},
		{"features n", []string{"fit", "--train", good, "--features", "41"}, 1, []string{"41", "40"}},
		{"n 1", []string{"fit", "--train", good, "--n", "1"}, 2, []string{"--n", "2"}},
		{"kernel", []string{"fit", "--train", good, "--kernel", "cubic"}, 2, []string{"cubic", "gaussian"}},
		{"solver", []string{"fit", "--train", good, "--solver", "qr"}, 2, []string{"qr", "pcg"}},
		{"storage", []string{"fit", "--train", good, "--storage", "int8"}, 2, []string{"int8", "float32"}},
		{"task", []string{"fit", "--train", good, "--task", "rank"}, 2, []string{"rank", "regression"}},
		{"scale", []string{"fit", "--train", good, "--scale", "huge"}, 2, []string{"huge", "standard"}},
		{"format", []string{"fit", "--train", good, "--format", "xls"}, 2, []string{"xls", "csv"}},
		{"target", []string{"fit", "--train", good, "--target", "9"}, 1, []string{"9", "4"}},
		{"memory", []string{"fit", "--train", good, "--memory", "much"}, 2, []string{"much", "20GB"}},
		{"little memory", []string{"fit", "--train", good, "--memory", "1kB", "--solver", "pcg"}, 1, []string{"kB"}},
		{"dataset", []string{"fit", "--data", "minst"}, 2, []string{"minst", "mnist"}},
		{"missing dataset", []string{"fit", "--data", "mnist"}, 1, []string{"mnist", "http", "train-images-idx3-ubyte"}},
		{"missing file", []string{"fit", "--train", dir + "/none.csv"}, 1, []string{"none.csv", "no such file"}},
		{"empty", []string{"fit", "--train", file("empty.csv", "")}, 1, []string{"empty.csv", "empty"}},
		{"one row", []string{"fit", "--train", file("one.csv", rows[0]+"\n")}, 1, []string{"1"}},
		{"nan", []string{"fit", "--train", file("nan.csv", row(6, "1,nan,2,3"))}, 1, []string{"nan.csv", "7", "2"}},
		{"overflow", []string{"fit", "--train", file("over.csv", row(6, "1,2,1e999,3"))}, 1, []string{"over.csv", "7", "3"}},
		{"text", []string{"fit", "--train", file("text.csv", row(6, "1,two,3,4"))}, 1, []string{"text.csv", "7", "two"}},
		{"ragged", []string{"fit", "--train", file("ragged.csv", row(6, "1,2,3"))}, 1, []string{"ragged.csv", "7", "3", "4"}},
		{"truncated", []string{"fit", "--train", file("cut.csv.gz", gz.String()[:gz.Len()/2])}, 1, []string{"cut.csv.gz"}},
		{"checksum", []string{"fit", "--train", file("sum.csv.gz", gz.String()[:gz.Len()-8]+"12345678")}, 1, []string{"sum.csv.gz", "checksum"}},
		{"libsvm 0", []string{"fit", "--train", file("zero.svm", "1 1:2\n-1 0:3\n")}, 1, []string{"zero.svm", "2", "0"}},
		{"libsvm order", []string{"fit", "--train", file("order.svm", "1 1:2\n-1 3:1 2:3\n")}, 1, []string{"order.svm", "2"}},
		{"magic", []string{"fit", "--format", "idx", "--train", file("x-images-idx3-ubyte", "abcdefghijklmnop")}, 1, []string{"x-images-idx3-ubyte", "magic"}},
		{"one class", []string{"fit", "--task", "classification", "--train", file("class.csv", "1,2,a\n2,3,a\n4,5,a\n")}, 1, []string{"one class"}},
		{"test dims", []string{"fit", "--train", good, "--test", file("wide.csv", "1,2,3,4,5\n2,3,4,5,6\n")}, 1, []string{"wide.csv", "4", "3"}},
		{"plot format", []string{"fit", "--train", good, "--plot", dir + "/a.gif"}, 2, []string{"gif", "svg"}},
		{"unwritable", []string{"fit", "--train", good, "--out", dir + "/no/m.krr"}, 1, []string{"no/m.krr"}},
		{"model", []string{"predict", "--in", good}, 2, []string{"--model"}},
		{"missing model", []string{"predict", "--model", dir + "/none.krr", "--in", good}, 1, []string{"none.krr", "no such file"}},
		{"damaged model", []string{"predict", "--model", good, "--in", good}, 1, []string{"good.csv", "model"}},
		{"threads", []string{"fit", "--train", good, "--threads", "0"}, 2, []string{"threads"}},
		{"blas", []string{"fit", "--train", good, "--blas", "mkl"}, 2, []string{"mkl"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "r.json")
			if c.args[0] == "fit" {
				c.args = append(c.args, "--json", out)
			}
			code, stdout, stderr := command(t, c.args...)
			if code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			if n := strings.Count(stderr, "\n"); n != 1 || !strings.HasPrefix(stderr, "krrlab: ") {
				t.Errorf("%d lines of error:\n%s", n, stderr)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("error does not say %q: %s", w, stderr)
				}
			}
			if strings.Contains(stdout, "result") {
				t.Errorf("printed %s", stdout)
			}
			if es, _ := os.ReadDir(filepath.Dir(out)); len(es) > 0 {
				t.Errorf("left %v behind", es)
			}
		})
	}
}

// TestNotConverged checks that results are written and the exit code is 3.
func TestNotConverged(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(200, nil, false))
	js, m, svg := filepath.Join(dir, "r.json"), filepath.Join(dir, "m.krr"), filepath.Join(dir, "c.svg")
	code, out, errs := command(t, "fit", "--train", train, "--solver", "cg", "--max-iter", "3", "--sigma", "3", "--lambda", "1e-6",
		"--json", js, "--out", m, "--plot", svg)
	if code != 3 || !strings.Contains(errs, "not converged") || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit %d: %s", code, errs)
	}
	if !strings.Contains(out, "max-iterations") {
		t.Errorf("printed %s", out)
	}
	if code, _, errs := command(t, "verify", m, "--train", train); code != 3 || !strings.Contains(errs, "fit it again with a larger --max-iter") {
		t.Errorf("verified: exit %d: %s", code, errs)
	}
	if r := report(t, js); r["status"] != "max-iterations" || r["iterations"] != 3.0 || r["true_residual"].(float64) < 1e-5 {
		t.Errorf("report %v", r)
	}
	for _, f := range []string{m, svg} {
		if st, err := os.Stat(f); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// TestEasyOddities checks inputs that look wrong and must work.
func TestEasyOddities(t *testing.T) {
	dir := t.TempDir()
	rows := strings.SplitAfter(table(30, nil, false), "\n")
	var twice, constant, zero strings.Builder
	for _, r := range rows[:30] {
		twice.WriteString(r + r)
		constant.WriteString("7," + r)
		zero.WriteString(r[:strings.LastIndex(r, ",")] + ",0\n")
	}
	for name, content := range map[string]string{"twice": twice.String(), "constant": constant.String(), "zero": zero.String()} {
		for _, scale := range []string{"none", "unit", "standard"} {
			for _, solver := range []string{"pcg", "cg", "direct"} {
				code, out, errs := command(t, "fit", "--train", write(t, dir, name+".csv", content), "--task", "regression", "--scale", scale, "--solver", solver)
				if code != 0 {
					t.Errorf("%s, scale %s, %s: exit %d\n%s%s", name, scale, solver, code, out, errs)
				}
			}
		}
	}
}

func TestQuiet(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(50, nil, false))
	if code, out, errs := command(t, "fit", "--train", train, "--quiet"); code != 0 || out != "" || errs != "" {
		t.Errorf("exit %d, printed %q %q", code, out, errs)
	}
}

func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(50, nil, false))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := filepath.Join(dir, "m.krr")
	for _, args := range [][]string{{"fit", "--out", m}, {"multilevel", "--sigma", "2"}, {"sketch-size", "--sigma", "2"}} {
		code, _, errs := commandContext(t, ctx, append(args, "--train", train)...)
		if code != exitInterrupted || !strings.Contains(errs, "interrupted") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
	if _, err := os.Stat(m); err == nil {
		t.Error("a model was written")
	}
}

// TestVersionFlag: --version and -v print what the command version does.
func TestVersionFlag(t *testing.T) {
	_, want, _ := command(t, "version")
	for _, flag := range []string{"--version", "-v"} {
		if code, out, errs := command(t, flag); code != exitOK || out != want || errs != "" {
			t.Errorf("%s: exit %d, %q, %q, want %q", flag, code, out, errs, want)
		}
	}
}

// TestRateText: a slow rate is printed as measured, and 0 as not measured.
func TestRateText(t *testing.T) {
	for v, want := range map[float64]string{0: "(not measured)", 2.34e7: "0.0234 GB/s", 28.13e9: "28.1 GB/s", 185e9: "185 GB/s"} {
		if got := rateText(v, "GB/s"); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}
