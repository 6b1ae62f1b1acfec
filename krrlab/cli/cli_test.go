package cli

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// runCommand runs one command line with Main. It returns the exit code and the texts written to the two output streams.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runCommandContext(t, context.Background(), args...)
}

// runCommandContext is like runCommand, with the given context.
func runCommandContext(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var outText, errText bytes.Buffer
	code = Main(ctx, args, Env{
		Stdout: &outText, Stderr: &errText, Version: "test",
		DataDirs: []string{filepath.Join(t.TempDir(), "cache")},
		UseBLAS:  useGoBLAS,
	})
	return code, outText.String(), errText.String()
}

// useGoBLAS is the field UseBLAS of Env for the BLAS in Go.
func useGoBLAS(context.Context, string) (note string, err error) {
	accel.UseLibrary(nil)
	return "", nil
}

var (
	prompt = regexp.MustCompile(`^\s*(\d*)\$ (.*)`)
	word   = regexp.MustCompile(`(?:"[^"]*"|[^\s"])+`)
)

// splitLine returns the arguments of a command line. Blanks in double quotes do not separate arguments.
func splitLine(line string) []string {
	args := word.FindAllString(line, -1)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], `"`, "")
	}
	return args
}

// runScript runs the command lines of text in the working directory and returns the standard output of the last one.
//
// A line "$ fit --n 9" runs krrlab with these arguments and expects the exit status 0; "2$ fit" expects the exit status
// 2. An argument with blanks is written in double quotes. Every line below a command must appear in its output or error
// output; a line that begins with "!" must not appear. A command that fails must write exactly one line of error
// output. A wrong command line (exit status 2) must not write any standard output.
func runScript(t *testing.T, text string) (out string) {
	t.Helper()
	var printed, commandLine string // output of the last command, and its line in the script
	for _, textLine := range strings.Split(text, "\n") {
		if match := prompt.FindStringSubmatch(textLine); match != nil {
			code, stdout, errOut := runCommand(t, splitLine(match[2])...)
			if fmt.Sprint(code) != cmp.Or(match[1], "0") || code != exitOK && strings.Count(errOut, "\n") != 1 ||
				code == exitUsage && stdout != "" {
				t.Errorf("%s: exit status %d, want %s and one line of error output if it is not 0: %s%s", textLine,
					code, cmp.Or(match[1], "0"), stdout, errOut)
			}
			out, printed, commandLine = stdout, stdout+errOut, textLine
		} else if textLine != "" {
			want, mustBeAbsent := strings.CutPrefix(strings.TrimSpace(textLine), "!")
			if strings.Contains(printed, want) == mustBeAbsent {
				t.Errorf("%s: want %q in the output (not in it after !)\n%s", commandLine, strings.TrimSpace(textLine),
					printed)
			}
		}
	}
	return out
}

// runStageCommand runs the command of a stage with --json and --plot, decodes the JSON into result, checks that the
// plot is an SVG picture, and returns the standard output.
func runStageCommand(t *testing.T, result any, args ...string) string {
	t.Helper()
	jsonFile, svgFile := filepath.Join(t.TempDir(), "s.json"), filepath.Join(t.TempDir(), "s.svg")
	code, out, stderr := runCommand(t, append(args, "--json", jsonFile, "--plot", svgFile)...)
	if code != exitOK || stderr != "" {
		t.Fatalf("%v: exit %d, %s%s", args, code, out, stderr)
	}
	testkit.OK(t, json.Unmarshal(readFile(t, jsonFile), result))
	testkit.Contains(t, string(readFile(t, svgFile)), "<svg")
	return out
}

// readFile returns the content of a file, or ends the test.
func readFile(t *testing.T, name string) []byte {
	t.Helper()
	return testkit.Must(os.ReadFile(name))
}

// writeFile writes a file into dir and returns its path.
func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	testkit.OK(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// enterTempFolder creates a temporary folder with the files, whose contents are given by name, and makes it the working
// directory.
func enterTempFolder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		writeFile(t, ".", name, content)
	}
}

// randomTable returns a csv file with the header a,b,c,y and the rows of randomRows.
func randomTable(n int, classes []string) string { return "a,b,c,y\n" + randomRows(n, classes) }

// randomRows returns n rows of a csv file without a header: three normal features a, b, c and a last column y. Without
// classes, y = sin a + bc plus noise; otherwise y is the class chosen by the size of sin a + bc.
func randomRows(n int, classes []string) string {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	var rows strings.Builder
	for range n {
		x := [3]float64{random.NormFloat64(), random.NormFloat64(), random.NormFloat64()}
		y := math.Sin(x[0]) + x[1]*x[2]
		fmt.Fprintf(&rows, "%.6g,%.6g,%.6g,", x[0], x[1], x[2])
		if classes == nil {
			fmt.Fprintf(&rows, "%.6g\n", y+0.01*random.NormFloat64())
			continue
		}
		class := int(math.Floor((math.Tanh(y) + 1) / 2 * float64(len(classes))))
		fmt.Fprintln(&rows, classes[min(class, len(classes)-1)])
	}
	return rows.String()
}

// readReport decodes the JSON report that a command wrote.
func readReport(t *testing.T, path string) map[string]any {
	t.Helper()
	var report map[string]any
	testkit.OK(t, json.Unmarshal(readFile(t, path), &report))
	return report
}

// checkKeys checks that the JSON object has a value other than null for every key.
func checkKeys(t *testing.T, object any, keys string) {
	t.Helper()
	for _, key := range strings.Fields(keys) {
		if object.(map[string]any)[key] == nil {
			t.Errorf("no %q in %v", key, object)
		}
	}
}

// TestSameLabelsBySolvers fits models and predicts with them from csv files, and checks that every solver, storage and
// form of the preconditioner gives the same predicted labels.
func TestSameLabelsBySolvers(t *testing.T) {
	labels := []string{"low", "mid", "high"}
	enterTempFolder(t, map[string]string{"train.csv": randomRows(200, labels), "test.csv": randomRows(60, labels)})
	var want string
	for _, args := range []string{
		"direct", "cg", `pcg --precond "features features=64 form=L"`,
		`pcg --precond "features features=64 form=Linv" --storage float64`,
		`pcg --precond "features features=64 form=U" --storage float32`,
		`pcg --precond "features features=64 form=eigen lambda-p=0.1" --storage recompute`,
	} {
		out := runScript(t, "$ fit --train train.csv --test test.csv --sigma 1.5 --lambda 0.05 --tol 1e-6 --out m.krr "+
			"--solver "+args)
		if !strings.Contains(out, "converged") && !strings.Contains(out, "solved") || !strings.Contains(out, "test") {
			t.Errorf("%s printed\n%s", args, out)
		}
		runScript(t, "$ predict --model m.krr --in test.csv --out pred.csv")
		got := string(readFile(t, "pred.csv"))
		if want == "" {
			want = got
			if !strings.HasPrefix(got, "row,prediction\n0,") || strings.Count(got, "\n") != 61 {
				t.Errorf("predictions are\n%s", got)
			}
			for _, label := range labels {
				if !strings.Contains(got, ","+label+"\n") {
					t.Errorf("no row is predicted to be %q", label)
				}
			}
		}
		testkit.Equal(t, got, want, args)
	}
}

// TestBadInput checks that each bad command line or data file gets one line of error output that names the cause and
// its place, has the right exit code, and leaves no report behind. The replacer adds --json to every fit, and a line
// "!result", so that no output may contain this word.
func TestBadInput(t *testing.T) {
	var compressed bytes.Buffer
	gzipWriter := gzip.NewWriter(&compressed)
	gzipWriter.Write([]byte(randomRows(400, nil)))
	gzipWriter.Close()
	rows := strings.Split(randomRows(40, nil), "\n")
	withLine7 := func(s string) string { return strings.Join(append(append(rows[:6:6], s), rows[7:]...), "\n") }
	enterTempFolder(t, map[string]string{
		"good.csv": randomRows(40, nil), "empty.csv": "", "one.csv": rows[0] + "\n",
		"nan.csv": withLine7("1,nan,2,3"), "over.csv": withLine7("1,2,1e999,3"),
		"text.csv": withLine7("1,two,3,4"), "ragged.csv": withLine7("1,2,3"),
		"cut.csv.gz": compressed.String()[:compressed.Len()/2],
		"sum.csv.gz": compressed.String()[:compressed.Len()-8] + "12345678", "zero.svm": "1 1:2\n-1 0:3\n",
		"order.svm": "1 1:2\n-1 3:1 2:3\n", "x-images-idx3-ubyte": "abcdefghijklmnop",
		"class.csv": "1,2,a\n2,3,a\n4,5,a\n", "wide.csv": "1,2,3,4,5\n2,3,4,5,6\n",
	})
	runScript(t, strings.NewReplacer("$ fit -", "$ fit --json left.json -", "\n\t", "\n\t!result\n\t").Replace(`
2$ fit
	want --data NAME or --train FILE
2$ fit --data mnist --train good.csv
	exclude
2$ fit --no-such
	no-such
2$ fit --train good.csv --lambda x
	lambda
2$ fit --train good.csv --lambda 0
	--lambda 0: want a positive number
2$ fit --train good.csv --precond "auto lambda-p=-1"
	lambda-p
2$ fit --train good.csv --lambda nan
	lambda
2$ fit --train good.csv --tol 0
	tol
2$ fit --train good.csv --tol 1
	tol
2$ fit --train good.csv --precond "auto features=0"
	features
1$ fit --train good.csv --precond "auto features=41"
	41
	40
2$ fit --train good.csv --n 1
	--n 1: want at least 2
2$ fit --train good.csv --kernel cubic
	cubic
	gaussian
2$ fit --train good.csv --task rank
	rank
	regression
2$ fit --train good.csv --scale huge
	huge
	standard
2$ fit --train good.csv --format xls
	xls
	csv
1$ fit --train good.csv --target 9
	column 9
	4
1$ fit --train good.csv --memory 1kB --solver pcg
	kB
1$ fit --train good.csv --memory 100MB --solver pcg
	without K and the program, would take
	and none is free, as 100 MB are kept for the program itself
1$ fit --data mnist
	mnist
	http
	train-images-idx3-ubyte
1$ fit --train none.csv
	none.csv
	no such file
1$ fit --train empty.csv
	empty.csv: the file is empty
1$ fit --train one.csv
	1
1$ fit --train nan.csv
	nan.csv, line 7, column 2
1$ fit --train over.csv
	over.csv, line 7, column 3
1$ fit --train text.csv
	text.csv, line 7, column 2: "two"
1$ fit --train ragged.csv
	ragged.csv, line 7: the row has 3 columns, the first row has 4
1$ fit --train cut.csv.gz
	cut.csv.gz
1$ fit --train sum.csv.gz
	sum.csv.gz: bad checksum
1$ fit --train zero.svm
	zero.svm, line 2, column 2: index 0
1$ fit --train order.svm
	order.svm, line 2
1$ fit --format idx --train x-images-idx3-ubyte
	x-images-idx3-ubyte: wrong magic number
1$ fit --task classification --train class.csv
	one class
1$ fit --train good.csv --test wide.csv
	wide.csv, line 1: points have 4 features, good.csv has 3
1$ fit --train good.csv --out no/m.krr
	no/m.krr
2$ predict --in good.csv
	--model
1$ predict --model none.krr --in good.csv
	none.krr
	no such file
1$ predict --model good.csv --in good.csv
	good.csv
	model
2$ fit --train good.csv --threads 0
	threads
2$ fit --train good.csv --blas mkl
	mkl`))
	if _, err := os.Stat("left.json"); err == nil {
		t.Error("a fit of bad input writes a report")
	}
}

// TestNotConverged checks that a fit that misses its tolerance exits with status 3, writes its model, report and
// picture, and advises what to change.
func TestNotConverged(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomRows(200, nil)})
	runScript(t, `
3$ fit --train train.csv --solver cg --max-iter 3 --sigma 3 --lambda 1e-6 --json r.json --out m.krr --plot c.svg
	not converged
	max-iterations
3$ fit --train train.csv --precond "vecchia neighbors=2" --max-iter 1 --sigma 3 --lambda 1e-6
	try more neighbors, such as --precond 'vecchia neighbors=60', or pivots (features=500), or a larger --max-iter
3$ verify m.krr --train train.csv
	fit it again with a larger --max-iter`)
	if report := readReport(t, "r.json"); report["status"] != "max-iterations" || report["iterations"] != 3.0 ||
		report["true_residual"].(float64) < 1e-5 {
		t.Errorf("want the status max-iterations after 3 iterations, and a residual above 1e-5: report %v", report)
	}
	if len(readFile(t, "m.krr")) == 0 || len(readFile(t, "c.svg")) == 0 {
		t.Error("the model or the picture is empty")
	}
}

// TestUnusualData checks that fits succeed on unusual but valid data: repeated rows, a constant feature, and a target
// that is zero everywhere.
func TestUnusualData(t *testing.T) {
	dir := t.TempDir()
	rows := strings.SplitAfter(randomRows(30, nil), "\n")
	var twice, constant, zero strings.Builder
	for _, row := range rows[:30] {
		twice.WriteString(row + row)
		constant.WriteString("7," + row)
		zero.WriteString(row[:strings.LastIndex(row, ",")] + ",0\n")
	}
	for name, content := range map[string]string{"twice": twice.String(), "constant": constant.String(),
		"zero": zero.String()} {
		for _, scale := range []string{"none", "unit", "standard"} {
			for _, solver := range []string{"pcg", "cg", "direct"} {
				runScript(t, "$ fit --train "+writeFile(t, dir, name+".csv", content)+
					" --task regression --scale "+scale+" --solver "+solver)
			}
		}
	}
}

// TestInterrupted checks that fit, multilevel and sketch-size exit with the interruption code if their context is
// canceled, and that fit writes no model then.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	train := writeFile(t, dir, "train.csv", randomRows(50, nil))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	modelFile := filepath.Join(dir, "m.krr")
	for _, args := range [][]string{{"fit", "--out", modelFile}, {"multilevel", "--sigma", "2"},
		{"sketch-size", "--sigma", "2"}} {
		code, _, stderr := runCommandContext(t, ctx, append(args, "--train", train)...)
		if code != exitInterrupted || !strings.Contains(stderr, "interrupted") {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
	}
	if _, err := os.Stat(modelFile); err == nil {
		t.Error("a model was written")
	}
}

// TestVersionFlag checks that --version and -v print the same text as the command version.
func TestVersionFlag(t *testing.T) {
	_, want, _ := runCommand(t, "version")
	for _, flag := range []string{"--version", "-v"} {
		if code, out, stderr := runCommand(t, flag); code != exitOK || out != want || stderr != "" {
			t.Errorf("%s: exit %d, %q, %q, want %q", flag, code, out, stderr, want)
		}
	}
}

// TestRateText checks that rateText prints a slow rate with its digits, and the rate 0 as "not measured".
func TestRateText(t *testing.T) {
	for rate, want := range map[float64]string{0: "(not measured)", 2.34e7: "0.0234 GB/s", 28.13e9: "28.1 GB/s",
		185e9: "185 GB/s"} {
		testkit.Equal(t, rateText(rate, "GB/s"), want, rate)
	}
}
