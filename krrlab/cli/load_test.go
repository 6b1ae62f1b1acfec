package cli

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestDimOfSparseFiles checks that a LIBSVM test file with more features than the training file is refused with both
// numbers of features, and that fit reads both files if dim= in --format gives the larger number.
func TestDimOfSparseFiles(t *testing.T) {
	rows := func(last string) string {
		return generateLines(40, func(i int) string {
			return fmt.Sprintf("%d 1:%d 3:%g%s\n", 2*(i%2)-1, i%7, float64(i)/7, last)
		})
	}
	enterTempFolder(t, map[string]string{"train.svm": rows(""), "test.svm": rows(" 5:1")})
	out := runScript(t, `
1$ fit --train train.svm --test test.svm --out m.krr --quiet
	krrlab: test.svm, line 1: points have 5 features, train.svm has 3; where the last features of sparse
1$ fit --train train.svm --format dim=2
	krrlab: train.svm, line 1: points have 3 features, want 2
2$ fit --train train.svm --format dim=0
	krrlab: --format dim 0: want at least 1 (see krrlab fit --help)
2$ fit --data mnist --format dim=9
	krrlab: --format dim goes with --train (see krrlab fit --help)
2$ quality --train a.svm --format dim=-1
	krrlab: --format dim -1: want at least 1 (see krrlab quality --help)
$ fit --train train.svm --test test.svm --out m.krr --quiet --format dim=5
$ predict --model m.krr --in test.svm`)
	testkit.Equal(t, strings.Count(out, "\n"), 41, out)
}

// tableWithIDs returns a csv file of n rows. Its first column counts the rows, and the spreads of its features a and b
// differ by orders of magnitude.
func tableWithIDs(n int) string {
	return "id,a,b,y\n" + generateLines(n, func(i int) string {
		a, c := float64(i*7%n)/float64(n), float64(i*11%n)
		return fmt.Sprintf("%d,%g,%g,%g\n", i+1, a, 100*c, a*a+c/float64(n))
	})
}

// TestNotesBeforeFit checks the notes that a fit prints before its work: identifiers among the features, the chosen
// scaling, missing test data, and fewer rows than --n. A note must not appear if a flag answers its question.
func TestNotesBeforeFit(t *testing.T) {
	enterTempFolder(t, map[string]string{"a.csv": tableWithIDs(50)})
	const scale = `note: --scale auto: standard, since the spreads of the features differ by a factor ` +
		`of 5000 (standard deviation 1.44e+03 of "b", 0.289 of "a")` + "\n"
	const id = `note: "id" looks like an identifier (whole numbers that all differ, or the name): unless the numbers are ` +
		"times, ranks or the like, leave them out by --drop id\n"
	const test = "note: there are no test data: --test FILE, or --holdout 0.2, shows how well the model predicts\n"
	for args, want := range map[string]string{
		"fit --train a.csv":                                          id + scale + test,
		"fit --train a.csv --scale none":                             id + test,
		"fit --train a.csv --scale standard --test a.csv":            id,
		"fit --train a.csv --scale standard --test a.csv --lambda 1": id,
		"fit --train a.csv --scale unit --holdout 0.2":               id,
		"fit --train a.csv --quiet":                                  "",
		"fit --train a.csv --scale none --n 80 --holdout 0.2": "note: --n 80: a.csv has 50 training rows; all " +
			"are used\n" + id,
		`statdim --train a.csv --precond "features features=20"`: id + scale,
		"fit --data synthetic-regression --n 100":                "",
		"fit --data synthetic-regression --n 4000": "note: --n 4000: synthetic-regression has 3000 " +
			"training rows; all are used\n",
	} {
		code, out, stderr := runCommand(t, splitLine(args)...)
		notes, _, _ := strings.Cut(out, "chosen  ")
		notes, _, _ = strings.Cut(notes, "data  ")
		if code != exitOK || stderr != "" || notes != want {
			t.Errorf("%s: exit %d, %s\n%swant\n%s", args, code, stderr, notes, want)
		}
	}
}

// TestDrop checks that --drop leaves columns out of the training and the test file, that verify and predict leave out
// the same columns, and that predict accepts a file without them.
func TestDrop(t *testing.T) {
	text := tableWithIDs(50)
	enterTempFolder(t, map[string]string{"a.csv": text,
		"bare.csv": regexp.MustCompile(`(?m)^[^,]*,([^,]*,[^,]*),.*$`).ReplaceAllString(text, "$1")})
	want := runScript(t, `
$ fit --train a.csv --test a.csv --drop id --target y --scale standard --lambda 0.01 --out m.krr
	n = 50, d = 2, t = 1
	!note:
$ verify m.krr --train a.csv
	the points are those of the model
1$ fit --train a.csv --drop c
	krrlab: a.csv, line 1: drop: no column is named "c": there are "id", "a", "b", "y"
1$ fit --train a.csv --drop 3
	krrlab: a.csv, line 1: target: column 3 is in --drop too: each has one use, and --target names the target
2$ fit --data mnist --drop 3
	krrlab: --drop goes with --train (see krrlab fit --help)
1$ statdim --train a.csv --drop id,a,b,y
	krrlab: a.csv, line 1: target: column 3 is in --drop too: each has one use, and --target names the target
$ predict --model m.krr --in bare.csv`)
	if got := runScript(t, "$ predict --model m.krr --in a.csv"); got != want || strings.Count(got, "\n") != 51 {
		t.Errorf("predictions of the file with the dropped column:\n%swant\n%s", got, want)
	}
}

// TestHoldout checks that verify finds the held-out rows of a fit again: for two seeds, it must report their number and
// the test error of the fit. The scripts check that bad values of --holdout are refused, and that --memory limits the
// reading of files by fits and stages.
func TestHoldout(t *testing.T) {
	enterTempFolder(t,
		map[string]string{"a.csv": tableWithIDs(60), "large.csv": strings.Repeat("0.5,1.5,2.5\n", 20000)})
	for _, seed := range []string{"1", "7"} {
		runScript(t,
			"$ fit --train a.csv --n 50 --scale standard --holdout 0.3 --out m.krr --json r.json --seed "+seed+`
$ verify m.krr --train a.csv --json v.json
	given, and the points are those of the model`)
		fitReport, verifyReport := readReport(t, "r.json"), readReport(t, "v.json")
		if fitReport["n"] != 35.0 || fitReport["test_n"] != 15.0 || verifyReport["test_n"] != 15.0 ||
			math.Abs(verifyReport["test_error"].(float64)-fitReport["rmse"].(float64)) > 1e-5*fitReport["rmse"].(float64) {
			t.Errorf("verify: %v points, RMSE %v, want %v of %v and %v", verifyReport["test_n"],
				verifyReport["test_error"], fitReport["rmse"], fitReport["test_n"], fitReport["n"])
		}
	}
	runScript(t, `
2$ fit --train a.csv --holdout 0
	krrlab: --holdout 0: want a number between 0 and 1 (see krrlab fit --help)
2$ fit --train a.csv --holdout 20
	krrlab: --holdout 20: want a number between 0 and 1 (see krrlab fit --help)
2$ fit --train a.csv --holdout 0.2 --test a.csv
	krrlab: --test and --holdout exclude each other (see krrlab fit --help)
2$ fit --data mnist --holdout 0.2
	krrlab: --data and --holdout exclude each other (see krrlab fit --help)
1$ fit --train a.csv --n 2 --holdout 0.1
	krrlab: 1 training point: want at least 2
2$ quality --train a.csv --holdout 0.2 --columns 1
	krrlab: unknown flag: --holdout (see krrlab quality --help)
1$ fit --train large.csv --n 19999 --memory 1MB --quiet
	krrlab: large.csv: more than 18517 rows would take 1 MB of memory, and 1 MB of 1 MB are free: read fewer rows by --n
1$ quality --train large.csv --n 19999 --memory 1MB --quiet
	krrlab: large.csv: more than 18517 rows would take 1 MB of memory, and 1 MB of 1 MB are free: read fewer rows by --n`)
}

// TestNoSkillWarning checks that the report has a note if a constant prediction, the mean or the most frequent class,
// is at least as good as the model on the test data, and no note otherwise.
func TestNoSkillWarning(t *testing.T) {
	enterTempFolder(t, map[string]string{
		"train.csv": generateLines(40, func(i int) string { return fmt.Sprintf("%d,%g\n", i, 100+float64(i%3)) }),
		"test.csv": generateLines(40,
			func(i int) string { return fmt.Sprintf("%g,%g\n", float64(i)+0.5, 100+float64(i%3)) }),
		"words.csv": generateLines(40,
			func(i int) string { return fmt.Sprintf("%d,%s\n", i, []string{"a", "a", "b"}[i%3]) }),
	})
	for args, want := range map[string]string{
		"--train train.csv --test test.csv --sigma 0.01 --task regression": "note         R² is not above 0: the " +
			"mean of the answers predicts as well; try another --sigma, a larger --lambda, or --scale standard\n",
		"--train train.csv --test train.csv --sigma 0.5 --task regression": "",
		"--train words.csv --test words.csv --sigma 100 --lambda 1000": `note         always "a", the most frequent class, has an error of ` +
			`32.50 %, no more than the model; try another --sigma, a larger --lambda, or --scale standard` + "\n",
		"--train words.csv --test words.csv --sigma 0.3": "",
	} {
		out := runScript(t, "$ fit --verbose "+args)
		if i := strings.Index(out, "note    "); want == "" && i >= 0 || want != "" && (i < 0 || out[i:] != want) {
			t.Errorf("%s: %swant %s", args, out, want)
		}
	}
}

// TestPackedData checks that a fit to a packed folder gives the same predictions as a fit to the file from which the
// folder was packed, and that its model predicts such files.
func TestPackedData(t *testing.T) {
	enterTempFolder(t, map[string]string{"a.csv": tableWithIDs(50), "b.svm": generateLines(30, func(i int) string {
		return fmt.Sprintf("%d 1:%d 2:%d\n", i%2, i%7, i%5)
	})})
	for file, flags := range map[string]string{
		"a.csv": "--target y --drop id --holdout 0.2", "b.svm": "--test b.svm --scale pixel"} {
		runScript(t, fmt.Sprintf(`
$ data pack --train %[1]s %[2]s --out packed
$ data info packed
$ fit --train %[1]s %[2]s --out m.krr --quiet
$ fit --data packed --scale auto --out p.krr --quiet
$ predict --model m.krr --in %[1]s --out m.csv --decision
$ predict --model p.krr --in %[1]s --out p.csv --decision
$ verify p.krr --data packed
2$ fit --data packed --scale unit
	pack the data again, or leave it out (see krrlab fit --help)`, file, flags))
		if direct, packed := string(readFile(t, "m.csv")), string(readFile(t, "p.csv")); direct != packed {
			t.Errorf("%s: %s, packed %s", file, direct, packed)
		}
	}
	runScript(t, `
2$ data pack --train a.csv
	krrlab: nowhere to write: want --out FOLDER (see krrlab data pack --help)
2$ data pack --out x
	krrlab: no data: want --data NAME or --train FILE (krrlab data list shows the names) (see krrlab data pack --help)`)
}

// TestScaledMemory checks that sparse points that become dense by --scale standard count against --memory.
func TestScaledMemory(t *testing.T) {
	enterTempFolder(t, map[string]string{"sparse.svm": strings.Repeat("1 1:1 100000:2\n2 2:1 99999:3\n", 50)})
	runScript(t, `1$ fit --train sparse.svm --scale standard --memory 50MB
	--scale standard of 100 sparse points with 100000 features would take
	scale by unit, which keeps zeros`)
}
