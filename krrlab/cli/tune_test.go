package cli

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestTuneCommand checks the JSON report of krrlab tune, and that the fit command that it prints gives the same test
// error and parameters as krrlab fit --tune.
func TestTuneCommand(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(160, []string{"a", "b", "c"})})
	var r map[string]any
	out := runStageCommand(t, &r, "tune", "--train", "train.csv", "--target", "y", "--scale", "standard", "--kernels",
		"gaussian,matern52")
	if !strings.Contains(out, "chosen") {
		t.Fatal(out)
	}
	best := r["best"].(map[string]any)
	for _, key := range []string{"sigma", "lambda", "error", "lo", "hi"} {
		if v, ok := best[key].(float64); !ok || v <= 0 {
			t.Errorf("best.%s is %v", key, best[key])
		}
	}
	if points := r["points"].([]any); len(points) < 10 || points[0].(map[string]any)["error"] == nil {
		t.Errorf("%d points", len(r["points"].([]any)))
	}
	_, line, ok := strings.Cut(out, "krrlab fit ")
	line, _, _ = strings.Cut(line, "\n")
	if want := fmt.Sprintf("--kernel %v --sigma %v --lambda %v", best["kernel"], best["sigma"], best["lambda"]); !ok ||
		!strings.Contains(line, want) {
		t.Fatalf("the command %q has no %q", line, want)
	}
	runScript(t, "$ fit "+line+" --test train.csv --json 1.json\n$ fit --train train.csv --test train.csv --target y "+
		"--scale standard --tune --json 2.json --kernel "+
		fmt.Sprint(best["kernel"])+"\ntuned ")
	byCommand, byTune := readReport(t, "1.json"), readReport(t, "2.json")
	tuned := byTune["tune"].(map[string]any)["best"].(map[string]any)
	if byCommand["rmse"] != byTune["rmse"] || tuned["sigma"] != best["sigma"] || tuned["lambda"] != best["lambda"] ||
		byTune["lambda"] != best["lambda"] {
		t.Errorf("by the command RMSE %v, by --tune %v: %v, want %v", byCommand["rmse"], byTune["rmse"], tuned, best)
	}
}

// TestTuneDistance checks the search for a distance. If only two of five features matter, each feature gets its own
// length scale; if a linear combination matters, the distance gets a 5×5 matrix. In both cases a and b must be the two
// most relevant columns, and the printed command, fit --tune and the saved model must agree. With --distance sigma
// there is only one length scale.
func TestTuneDistance(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	random := rand.New(rand.NewPCG(1, 2))
	functions := map[string]func(x *[6]float64) float64{ // of the features u, v, w, a, b
		"lengths": func(x *[6]float64) float64 { return math.Sin(2*x[3]) + x[4] },
		"matrix":  func(x *[6]float64) float64 { return math.Sin(x[0] - x[1] + 2*(x[3]-x[4])) },
	}
	for kind, f := range functions {
		writeFile(t, dir, kind+".csv", "u,v,w,a,b,y\n"+generateLines(400, func(int) string {
			var x [6]float64
			for j := range x {
				x[j] = random.NormFloat64()
			}
			return fmt.Sprintf("%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n", x[0], x[1], x[2], x[3], x[4], f(&x)+0.1*x[5])
		}))
		args := []string{"--train", kind + ".csv", "--target", "y", "--scale", "standard", "--kernel", "gaussian"}
		var r map[string]any
		out := runStageCommand(t, &r, append([]string{"tune"}, args...)...)
		best, found := r["best"].(map[string]any), r["distances"].([]any)
		numbers, _ := best[kind].([]any)
		relevant := found[len(found)-1].(map[string]any)["relevant"].([]any)
		if want := map[string]int{"lengths": 5, "matrix": 25}[kind]; len(numbers) != want ||
			!(best["sigma"].(float64) > 0) ||
			!strings.Contains(out, "features ") || !slices.Contains(relevant[:2], "a") ||
			!slices.Contains(relevant[:2], "b") {
			t.Fatalf("%s: %v\n%s", kind, found, out)
		}
		if strings.Contains(out, "directions ") != (kind == "matrix") {
			t.Errorf("%s: %s", kind, out)
		}
		_, line, _ := strings.Cut(out, "krrlab fit ")
		line, _, _ = strings.Cut(line, "\n")
		for reportFile, flags := range map[string]string{"1.json": line,
			"2.json": strings.Join(args, " ") + " --tune"} {
			runScript(t,
				"$ fit "+flags+" --test "+kind+".csv --json "+reportFile+" --out m.krr\n$ verify m.krr --train "+kind+
					".csv\nproved")
		}
		byCommand, byTune := readReport(t, "1.json"), readReport(t, "2.json")
		if byCommand["rmse"] != byTune["rmse"] || byCommand["scaling"] != byTune["scaling"] ||
			byTune["kernel"].(map[string]any)["sigma"] != 1.0 {
			t.Errorf("by the command RMSE %v (%v), by --tune %v (%v)", byCommand["rmse"], byCommand["scaling"],
				byTune["rmse"], byTune["scaling"])
		}
		runScript(t, `
$ loo --train `+kind+`.csv --target y --scale standard --kernel gaussian --sigma `+sigmaOf(line)+`
$ predict --model m.krr --in `+kind+`.csv --out p.csv
`)
		runStageCommand(t, &r, append([]string{"tune", "--distance", "sigma"}, args...)...)
		if best := r["best"].(map[string]any); best[kind] != nil {
			t.Errorf("--distance sigma finds another distance: %v", best)
		}
	}
	runScript(t, `
2$ tune --train lengths.csv --target y --distance full --sigma 2
	the distance full is not searched for a given σ = 2
2$ tune --train lengths.csv --target y --distance lengths --kernel polynomial
	no distance lengths: the kernel polynomial is a function of inner products`)
}

// sigmaOf returns the value of --sigma on a command line.
func sigmaOf(line string) string {
	_, text, _ := strings.Cut(line, "--sigma ")
	text, _, _ = strings.Cut(text, " ")
	return text
}

// TestTuneCommandLine checks that the command that tune prints contains the length scales, the scaling and the held-out
// rows of the search, and that the search keeps a parameter that a flag sets. A polynomial kernel keeps its degree, and
// validation rows can be given.
func TestTuneCommandLine(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(90, []string{"a", "b"})})
	for _, c := range []struct {
		args, line string // the command, and a part of the command that it prints
		key        string
		want       any // value of the key in the best point
	}{
		{"tune --sigma 2,0.5,1 --kernel gaussian", " --sigma 2,0.5,1 --lambda ", "kernel", "gaussian"},
		{"tune --sigma 2,0.5,1 --sigma 1.5 --kernel gaussian", " --sigma 1.5 --lambda ", "sigma", 1.5},
		{"fit --tune --holdout 0.2 --kernel gaussian", " --holdout 0.2 ", "kernel", "gaussian"},
		{"tune --scale standard --sigma 1.7 --kernel gaussian", "--scale standard", "sigma", 1.7},
		{"tune --scale standard --lambda 0.3 --kernels matern32", "--lambda 0.3", "lambda", 0.3},
		{`tune --scale standard --kernel "polynomial degree=2"`, "degree=2", "degree", 2.0},
		{"tune --scale standard --valid train.csv --kernel laplacian", "--kernel laplacian", "kernel", "laplacian"},
	} {
		runScript(t, "$ "+c.args+" --train train.csv --target y --json t.json")
		report := readReport(t, "t.json")
		if strings.HasPrefix(c.args, "fit") {
			report = report["tune"].(map[string]any)
		}
		if line := fmt.Sprint(report["command"]); !strings.Contains(line, c.line) ||
			report["best"].(map[string]any)[c.key] != c.want {
			t.Errorf("%s: %q, %v", c.args, line, report["best"])
		}
	}
}

// TestQuickSearchOfFit checks the quick search of a fit without --tune, --sigma and --lambda. It chooses the same
// kernel parameters, to the bit, with one and two threads. A fit with --sigma, --lambda or kernel parameters makes no
// search. A fit to too few rows uses the defaults and says why.
func TestQuickSearchOfFit(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(60, nil), "few.csv": randomTable(12, nil)})
	const fit = " fit --train train.csv --target y --json f.json "
	var singleThreaded any
	for _, threads := range []string{"1", "2"} {
		out := runScript(t, "$"+fit+"--threads "+threads)
		report := readReport(t, "f.json")
		best := report["tune"].(map[string]any)["best"].(map[string]any)
		if delete(best, "seconds"); singleThreaded == nil {
			singleThreaded = fmt.Sprint(best, report["rmse"], report["true_residual"])
		}
		if got := fmt.Sprint(best, report["rmse"], report["true_residual"]); got != singleThreaded ||
			!strings.Contains(out, "a quick search") || best["lambda"] != report["lambda"] {
			t.Errorf("%s threads: %s, want %v\n%s", threads, got, singleThreaded, out)
		}
	}
	for _, flags := range []string{"--lambda 0.5", "--sigma 2", `--kernel "polynomial gamma=0.1"`,
		"--kernel matern32 --sigma 1"} {
		if runScript(t, "$"+fit+flags); readReport(t, "f.json")["tune"] != nil {
			t.Errorf("fit %s makes a search", flags)
		}
	}
	if runScript(t, "$"+fit+"--kernel polynomial"); readReport(t,
		"f.json")["kernel"].(map[string]any)["name"] != "polynomial" {
		t.Error("the search tried other kernels than --kernel")
	}
	out := runScript(t, "$ fit --train few.csv --target y --json f.json")
	testkit.Equal[any](t, readReport(t, "f.json")["lambda"], 0.01)
	testkit.Contains(t, out, "σ and λ are defaults, since the quick search for them failed: 12 rows: want at least 20")
}

// TestShortReport checks the lines of the report of a fit. The short report says what was read and chosen, compares the
// error with a baseline, and suggests the next command. With --verbose or after a missed tolerance, the report is
// complete. The baseline must be the RMSE of the mean of the answers.
func TestShortReport(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(60, nil)})
	// The values are the names of the lines that must be printed; the other names of the list below must be absent.
	for args, want := range map[string]string{
		"--holdout 0.3":          "read|chosen|fitted|test|baseline|next",
		"--lambda 1 --out m.krr": "read|fitted|wrote|next",
		"--verbose --lambda 1":   "read|solver|error|machine",
	} {
		out := runScript(t, "$ fit --train train.csv --target y "+args)
		for _, name := range strings.Split("read|chosen|fitted|test|baseline|next|solver|error|machine|wrote", "|") {
			if got := strings.Contains(out, "\n"+name+" "); got != slices.Contains(strings.Split(want, "|"), name) {
				t.Errorf("%s: the line %s: %v\n%s", args, name, got, out)
			}
		}
	}
	out := runScript(t, "3$ fit --train train.csv --target y --lambda 1e-9 --solver cg --max-iter 2\nsolver ")
	if strings.Contains(out, "\nnext") {
		t.Errorf("a fit that misses its tolerance suggests the next command:\n%s", out)
	}
	var y []float64
	for _, cell := range readColumns(t, "train.csv")["y"] {
		y = append(y, testkit.Must(strconv.ParseFloat(cell, 64)))
	}
	runScript(t, "$ fit --train train.csv --target y --test train.csv --sigma 1\nbaseline     "+
		fmt.Sprintf("RMSE %.4g", stat.PopStdDev(y, nil)))
}

// TestValidGroups checks that rows to judge by have the groups of their own file, which widen the interval of the
// error, and that a note says so if the file has none.
func TestValidGroups(t *testing.T) {
	var effect float64 // of the groups on the answers
	row := func(i int) string {
		return fmt.Sprintf("%d,%d.5,%g\n", i/4, i*7%60, math.Sin(float64(i))+effect*float64(i/4%2))
	}
	train := generateLines(60, row)
	effect = 3
	valid := generateLines(60, row)
	enterTempFolder(t, map[string]string{"t.csv": "g,x,y\n" + train, "v.csv": "g,x,y\n" + valid,
		"w.csv": "x,y\n" + regexp.MustCompile(`(?m)^[^,\n]*,`).ReplaceAllString(valid, "")})
	runScript(t, `
$ tune --train t.csv --valid v.csv --groups g --target y --sigma 3 --lambda 1 --json v.json
	rows of one group stay together; the error is of rows of new groups
	groups are not compared between files
$ tune --train t.csv --valid w.csv --groups g --target y --sigma 3 --lambda 1 --json w.json
	note: w.csv has no column g: each of its rows counts as a group
	!the error is of`)
	width := func(file string) float64 {
		best := readReport(t, file)["best"].(map[string]any)
		return best["hi"].(float64) - best["lo"].(float64)
	}
	if grouped, ungrouped := width("v.json"), width("w.json"); !(grouped > 1.2*ungrouped) {
		t.Errorf("the interval has the width %g with groups, %g without; want 1.2 times as wide", grouped, ungrouped)
	}
}

// TestFailedFold checks that a fit is kept if one of the folds of its cross-validation cannot be fitted, and that the
// report and the JSON file give the reason; here one fold has the only row of the class "yes". The output calls the
// error of the folds optimistic if the search for parameters saw the same rows.
func TestFailedFold(t *testing.T) {
	var rare, plain strings.Builder
	rare.WriteString("a,b,y\n")
	plain.WriteString("a,b,y\n")
	for i := range 40 {
		class := "no"
		if i == 7 {
			class = "yes"
		}
		fmt.Fprintf(&rare, "%d,%d,%s\n", i, i*i%7, class)
		fmt.Fprintf(&plain, "%d,%d,%g\n", i, i*i%7, math.Sin(float64(i)))
	}
	enterTempFolder(t, map[string]string{"rare.csv": rare.String(), "plain.csv": plain.String()})
	runScript(t, `
$ fit --train rare.csv --sigma 1 --lambda 0.1 --folds 4 --out m.krr --json r.json
	folds        none: fold
$ fit --train plain.csv --folds 4
	fit to the others
	optimistic
$ fit --train plain.csv --folds 4 --sigma 1 --lambda 0.1
	fit to the others
	!optimistic`)
	if _, err := os.Stat("m.krr"); err != nil {
		t.Error(err)
	}
	if reason, _ := readReport(t, "r.json")["folds_failed"].(string); !strings.Contains(reason, "fold") {
		t.Errorf("folds_failed: %q", reason)
	}
}
