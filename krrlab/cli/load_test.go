package cli

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestDim: a LIBSVM test file with more features than the training file is refused with both
// numbers, whose each is and the flag that reads them; with that flag it is read.
func TestDim(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	rows := func(last string) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, "%d 1:%d 3:%g%s\n", 2*(i%2)-1, i%7, float64(i)/7, last)
		}
		return b.String()
	}
	write(t, dir, "train.svm", rows(""))
	write(t, dir, "test.svm", rows(" 5:1"))
	fit := strings.Fields("fit --train train.svm --test test.svm --out m.krr --quiet")
	code, _, errs := command(t, fit...)
	want := "krrlab: test.svm, line 1: points have 5 features, train.svm has 3; where the last features of sparse data are all zero, say --dim 5 for both files\n"
	if code != exitError || errs != want {
		t.Errorf("exit %d, %swant %s", code, errs, want)
	}
	if code, _, errs := command(t, append(fit, "--dim", "5")...); code != exitOK || errs != "" {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, out, errs := command(t, "predict", "--model", "m.krr", "--in", "test.svm"); code != exitOK || strings.Count(out, "\n") != 41 {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	for args, want := range map[string]string{
		"fit --train train.svm --dim 2":  "train.svm, line 1: points have 3 features, want 2",
		"fit --train train.svm --dim 0":  "--dim 0: want at least 1 (see krrlab fit --help)",
		"fit --data mnist --dim 9":       "--dim goes with --train; --data has its own (see krrlab fit --help)",
		"quality --train a.svm --dim -1": "--dim -1: want at least 1 (see krrlab quality --help)",
	} {
		if _, _, errs := command(t, strings.Fields(args)...); errs != "krrlab: "+want+"\n" {
			t.Errorf("%s: %swant %s", args, errs, want)
		}
	}
}

// ids is a file whose first column counts the rows and whose features have spreads far apart.
func ids(n int) string {
	var b strings.Builder
	b.WriteString("id,a,b,y\n")
	for i := range n {
		a, c := float64(i*7%n)/float64(n), float64(i*11%n)
		fmt.Fprintf(&b, "%d,%g,%g,%g\n", i+1, a, 100*c, a*a+c/float64(n))
	}
	return b.String()
}

// TestHints: what a newcomer may want to know is said before the work begins, and not where it was
// asked for.
func TestHints(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "a.csv", ids(50))
	const scale = `note: --scale auto: standard, since the spreads of the features differ by a factor of 5000 (standard deviation 1.44e+03 of "b", 0.289 of "a")` + "\n"
	const id = `note: "id" counts the rows: if it is an index and no feature, leave it out by --drop` + "\n"
	const tune = "note: the scale of the kernel and λ are defaults: --tune chooses them by the data\n"
	const test = "note: there are no test data: --test FILE, or --holdout 0.2, shows how well the model predicts\n"
	for args, want := range map[string]string{
		"fit --train a.csv":                                          id + scale + test + tune,
		"fit --train a.csv --scale none":                             id + test + tune,
		"fit --train a.csv --scale standard --test a.csv":            id + tune,
		"fit --train a.csv --scale standard --test a.csv --lambda 1": id,
		"fit --train a.csv --scale unit --holdout 0.2":               id + tune,
		"fit --train a.csv --quiet":                                  "",
		"fit --train a.csv --scale none --n 80 --holdout 0.2":        "note: --n 80: a.csv has 50 training rows; all are used\n" + id + tune,
		"statdim --train a.csv --features 20":                        id + scale,
		"fit --data synthetic-regression --n 100":                    "",
		"fit --data synthetic-regression --n 4000":                   "note: --n 4000: synthetic-regression has 3000 training rows; all are used\n",
	} {
		code, out, errs := command(t, strings.Fields(args)...)
		head, _, _ := strings.Cut(out, "data  ")
		if code != exitOK || errs != "" || head != want {
			t.Errorf("%s: exit %d, %s\n%swant\n%s", args, code, errs, head, want)
		}
	}
}

// TestDrop: columns that are no features are left out of the training and the test file; predict and
// verify leave them out too, and take a file without them.
func TestDrop(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	text := ids(50)
	write(t, dir, "a.csv", text)
	var bare strings.Builder
	for line := range strings.Lines(text) {
		c := strings.Split(line, ",")
		fmt.Fprintf(&bare, "%s,%s\n", c[1], c[2])
	}
	write(t, dir, "bare.csv", bare.String())
	code, out, errs := command(t, "fit", "--train", "a.csv", "--test", "a.csv", "--drop", "id", "--target", "y", "--scale", "standard", "--lambda", "0.01", "--out", "m.krr")
	if code != exitOK || !strings.Contains(out, "n = 50, d = 2, t = 1") || strings.Contains(out, "note:") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	_, want, _ := command(t, "predict", "--model", "m.krr", "--in", "bare.csv")
	if code, out, errs := command(t, "predict", "--model", "m.krr", "--in", "a.csv"); code != exitOK || out != want || strings.Count(out, "\n") != 51 {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if code, out, errs := command(t, "verify", "m.krr", "--train", "a.csv"); code != exitOK || !strings.Contains(out, "the points are those of the model") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	for args, want := range map[string]string{
		"fit --train a.csv --drop c":            `a.csv, line 1: drop: no column is named "c": there are "id", "a", "b", "y"`,
		"fit --train a.csv --drop 3":            "a.csv, line 1: the target, column 3, is among those dropped: name the target by --target",
		"fit --data mnist --drop 3":             "--drop goes with --train; --data has its own (see krrlab fit --help)",
		"statdim --train a.csv --drop id,a,b,y": "a.csv, line 1: the target, column 3, is among those dropped: name the target by --target",
	} {
		if _, _, errs := command(t, strings.Fields(args)...); errs != "krrlab: "+want+"\n" {
			t.Errorf("%s: %swant %s", args, errs, want)
		}
	}
}

// TestHoldout: the rows held out are those that Holdout draws, scaled by the others, whatever the
// seed of the fit; verify finds them again.
func TestHoldout(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "a.csv", ids(60))
	for _, seed := range []string{"1", "7"} {
		code, out, errs := command(t, "fit", "--train", "a.csv", "--n", "50", "--scale", "standard", "--holdout", "0.3", "--seed", seed, "--out", "m.krr", "--json", "r.json")
		if code != exitOK {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
		r := report(t, "r.json")
		if r["n"] != 35.0 || r["test_n"] != 15.0 {
			t.Errorf("n = %v, %v to test on", r["n"], r["test_n"])
		}
		code, out, errs = command(t, "verify", "m.krr", "--train", "a.csv", "--json", "v.json")
		if code != exitOK || !strings.Contains(out, "given, and the points are those of the model") {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
		v := report(t, "v.json")
		if v["test_n"] != 15.0 || math.Abs(v["test_error"].(float64)-r["rmse"].(float64)) > 1e-5*r["rmse"].(float64) {
			t.Errorf("verify: %v points, RMSE %v, want %v", v["test_n"], v["test_error"], r["rmse"])
		}
	}
	for args, want := range map[string]string{
		"fit --train a.csv --holdout 0":                   "--holdout 0: want a share between 0 and 1, such as 0.2 (see krrlab fit --help)",
		"fit --train a.csv --holdout 20":                  "--holdout 20: want a share between 0 and 1, such as 0.2 (see krrlab fit --help)",
		"fit --train a.csv --holdout 0.2 --test a.csv":    "--holdout and --test exclude each other (see krrlab fit --help)",
		"fit --data mnist --holdout 0.2":                  "--holdout goes with --train; --data has its own test rows (see krrlab fit --help)",
		"fit --train a.csv --n 2 --holdout 0.1":           "1 training point: want at least 2",
		"quality --train a.csv --holdout 0.2 --columns 1": "unknown flag: --holdout (see krrlab quality --help)",
	} {
		if _, _, errs := command(t, strings.Fields(args)...); errs != "krrlab: "+want+"\n" {
			t.Errorf("%s: %swant %s", args, errs, want)
		}
	}
}

// TestReadingMemory: --memory bounds the reading of a file too, for fits and stages.
func TestReadingMemory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "train.csv", strings.Repeat("0.5,1.5,2.5\n", 20000))
	for _, command1 := range []string{"fit", "quality"} {
		code, _, errs := command(t, command1, "--train", "train.csv", "--n", "19999", "--memory", "1MB", "--quiet")
		if code != exitError || !strings.HasPrefix(errs, "krrlab: train.csv: reading more than 11110 rows takes more than 1 MB") {
			t.Errorf("%s: exit %d, %s", command1, code, errs)
		}
	}
}

// TestUseless: where a constant does no worse than the model the report says so.
func TestUseless(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	var train, test, words strings.Builder
	for i := range 40 {
		fmt.Fprintf(&train, "%d,%g\n", i, 100+float64(i%3))
		fmt.Fprintf(&test, "%g,%g\n", float64(i)+0.5, 100+float64(i%3))
		fmt.Fprintf(&words, "%d,%s\n", i, []string{"a", "a", "b"}[i%3])
	}
	write(t, dir, "train.csv", train.String())
	write(t, dir, "test.csv", test.String())
	write(t, dir, "words.csv", words.String())
	for args, want := range map[string]string{
		"--train train.csv --test test.csv --sigma 0.01 --task regression": "note         R² is not above 0: the mean of the answers predicts as well; try another --sigma, a larger --lambda, or --scale standard\n",
		"--train train.csv --test train.csv --sigma 0.5 --task regression": "",
		"--train words.csv --test words.csv --sigma 100 --lambda 1000":     `note         always "a", the most frequent class, has an error of 32.50 %, no more than the model; try another --sigma, a larger --lambda, or --scale standard` + "\n",
		"--train words.csv --test words.csv --sigma 0.3":                   "",
	} {
		code, out, errs := command(t, append([]string{"fit"}, strings.Fields(args)...)...)
		if i := strings.Index(out, "note    "); code != exitOK || want == "" && i >= 0 || want != "" && (i < 0 || out[i:] != want) {
			t.Errorf("%s: exit %d, %s\n%swant %s", args, code, errs, out, want)
		}
	}
}
