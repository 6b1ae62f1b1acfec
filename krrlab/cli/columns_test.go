package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestCenter checks that regression subtracts the mean of the answers by default, and that the report and the model say
// so. The test errors that verify and predict print must equal the test error of the fit. With --center no, as in the
// paper, nothing is subtracted; classes are never centered.
func TestCenter(t *testing.T) {
	enterTempFolder(t, map[string]string{
		"a.csv": generateLines(60, func(i int) string {
			x := float64(i*7%60) / 10
			return fmt.Sprintf("%g,%g\n", x, 500+math.Sin(x))
		}),
		"c.csv": generateLines(60,
			func(i int) string { return fmt.Sprintf("%d,%s\n", i*7%60, []string{"a", "b"}[i%2]) }),
	})
	rmse := map[string]float64{}
	for _, center := range []string{"auto", "yes", "no"} {
		absent := "" // "!" if the line about the mean must not appear
		if center == "no" {
			absent = "!"
		}
		runScript(t,
			"$ fit --verbose --train a.csv --test a.csv --sigma 1 --lambda 1 --out m.krr --json r.json --center "+
				center+"\n"+absent+"y less its mean 500")
		report := readReport(t, "r.json")
		if (report["mean"] == nil) != (center == "no") {
			t.Errorf("%s: mean %v", center, report["mean"])
		}
		rmse[center] = report["rmse"].(float64)
		runScript(t, "$ verify m.krr --train a.csv --test a.csv --json v.json\n"+absent+"y less its mean")
		if v := readReport(t, "v.json"); math.Abs(v["test_error"].(float64)-rmse[center]) > 1e-5*(1+rmse[center]) {
			t.Errorf("%s: RMSE %v, want %v", center, v["test_error"], rmse[center])
		}
		runScript(t, "$ predict --model m.krr --in a.csv --bound --out p.csv\n"+fmt.Sprintf("RMSE %.4g", rmse[center]))
	}
	if rmse["auto"] != rmse["yes"] || !(rmse["auto"] < rmse["no"]/10) {
		t.Errorf("RMSE %v, want that of auto to be that of yes, and at most a tenth of that of no", rmse)
	}
	runScript(t, `
$ fit --train c.csv
	!mean
2$ fit --train c.csv --center yes
	--center yes: the answers are classes`)
}

// generateLines returns f(0), …, f(n−1) joined into one text.
func generateLines(n int, f func(i int) string) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(f(i))
	}
	return text.String()
}

// TestWeights checks three properties of weights. The column of weights is not a feature in any file; rows of weight 3
// give the same test error as three equal rows; and balanced class weights find a rare class that a fit without weights
// never predicts. The scripts check the messages of predict, verify and refused command lines.
func TestWeights(t *testing.T) {
	rowAt := func(i int) (x, y float64) { x = float64(i*7%40) / 10; return x, 5 + math.Sin(x) + float64(i%2) }
	testRows := generateLines(40, func(i int) string { x, y := rowAt(i); return fmt.Sprintf("%g,1,%g\n", x+0.05, y) })
	enterTempFolder(t, map[string]string{
		"once.csv": "x,w,y\n" + generateLines(40, func(i int) string {
			x, y := rowAt(i)
			return fmt.Sprintf("%g,%d,%g\n", x, 1+i%2*2, y)
		}),
		"often.csv": "x,y\n" + generateLines(40, func(i int) string {
			x, y := rowAt(i)
			return strings.Repeat(fmt.Sprintf("%g,%g\n", x, y), 1+i%2*2)
		}),
		"test.csv": "x,w,y\n" + testRows, "bare.csv": "x,y\n" + strings.ReplaceAll(testRows, ",1,", ","),
		"rare.csv": generateLines(40, func(i int) string {
			x, _ := rowAt(i)
			if i%8 == 0 {
				return fmt.Sprintf("%g,b\n", x)
			}
			return fmt.Sprintf("%g,a\n", x)
		}),
		"huge.csv": "x,w,y\n1,1,2\n2,1e300,3\n3,1,5\n",
	})
	const fit = "$ fit --verbose --sigma 1 --lambda 0.3 --scale none --json r.json --out "
	runScript(t, fit+"o.krr --train often.csv --test bare.csv")
	want := readReport(t, "r.json")["rmse"].(float64)
	runScript(t, fit+"w.krr --train once.csv --weights w --test test.csv")
	report := readReport(t, "r.json")
	if got := report["rmse"].(float64); report["weighted"] != true || report["d"] != 1.0 ||
		!(math.Abs(got-want) <= 1e-5*want) {
		t.Errorf("with rows repeated %g, with weights %v", want, report)
	}
	runScript(t, fmt.Sprintf(`
$ predict --model w.krr --in test.csv --out p.csv
	RMSE %.4g
$ model info w.krr
	weights 
$ predict --model w.krr --in test.csv --interval 90%%
	lo,hi
`, report["rmse"])+fit+`w.krr --train once.csv --weights w --solver direct
	‖E‖₂ ≲
	certain: 
1$ fit --train huge.csv --weights w
	huge: the weight of row 1 (counted from 0) is 1e+300: want a positive number from 1e-150 to 1e150; leave rows of weight 0 out
1$ fit --train once.csv --weights z
	once.csv, line 1: weights: no column is named "z": there are "x", "w", "y"
1$ fit --train once.csv --weights y
	once.csv, line 1: target: column 2 is in --weights too: each has one use, and --target names the target
1$ fit --train once.csv --weights w --drop w
	once.csv, line 1: weights: column 1 is in --drop too
1$ fit --train once.csv --weights x
	once.csv, line 2, column 1: x: the weight 0 is not positive; leave rows of weight 0 out
1$ fit --train once.csv --class-weights balanced
	once: class weights need classes, and the answers are numbers
2$ fit --train absent.csv --class-weights balancd
	class weights "balancd": want none, balanced, or positive weights
2$ fit --data mnist --weights w
	--weights goes with --train (see krrlab fit --help)
1$ predict --model w.krr --in test.csv --drop x
	test.csv, line 1: drop: the column "x" is a feature of the model, which needs it
1$ predict --model w.krr --in test.csv --interval 0.9 --method jackknife+
	fitted with weights, with which leave-one-out errors are not those of new rows: fit with --holdout or --test
1$ serve w.krr --listen 127.0.0.1:99999
	--listen 127.0.0.1:99999: listen tcp: address 99999: invalid port (port 0 takes any free one)
$ predict --model w.krr --in test.csv --interval 0.9 --method posterior
	row,prediction,lo,hi,std
$ verify w.krr --train once.csv
	‖W^½(y−(K+λW⁻¹)c)‖/‖W^½y‖, with the weights of the model, = 
	: proved
$ fit --train once.csv --weights w --space x --kernel gaussian --sigma 1 --lambda 0.3 --out place.krr
$ predict place.krr --in test.csv --method posterior --interval 90%
	left out, not in the model: "w"
$ verify place.krr --train once.csv
	: proved
$ fit --verbose --train once.csv --weights w --solver pcg --precond "features features=9"
	Fourier features`)
	countRare := func(classes string) int {
		return strings.Count(runScript(t,
			"$ fit --train rare.csv --sigma 5 --lambda 1 --out c.krr --class-weights "+classes+"\n$ predict --model "+
				"c.krr --in rare.csv"), ",b\n")
	}
	unweighted, balanced, weighted := countRare("none"), countRare("balanced"), countRare("a=0.1,b=10")
	if unweighted != 0 || balanced < 5 || weighted < 5 {
		t.Errorf("the rare class is predicted %d times, balanced %d times, with weights %d times", unweighted, balanced,
			weighted)
	}
	// Class weights count in the fits of tune, not in its errors: a fit that predicts "a" for all rows is wrong for all
	// "b".
	const tune = "$ tune --train rare.csv --sigma 5 --lambda 1e9 --class-weights "
	runScript(t,
		tune+"b=1e-9 --json t.json\n\tclass weights count in the fits only\n1"+tune+"q=2\n\tno row has the label \"q\"\n2"+
			tune+"b\n\twant none, balanced, or\n2"+tune+"b=-1\n\tpositive")
	if e := readReport(t, "t.json")["best"].(map[string]any)["error"]; e != 0.125 {
		t.Errorf("the error of tune is %v, want the unweighted 0.125", e)
	}
}

// TestImpute checks that --impute fills missing values with the median or mean of the training rows. The predictions
// must agree with a fit to a file that has these numbers in the cells, also when predict fills rows with the same
// numbers. A column without any value is an error, and without --impute, predict counts the missing cells by column.
func TestImpute(t *testing.T) {
	rows := func(missing func(i int) string) string {
		return "a,b,y\n" + generateLines(31, func(i int) string {
			cell := fmt.Sprint(i * i)
			if i%10 == 3 {
				cell = missing(i)
			}
			return fmt.Sprintf("%g,%s,%g\n", float64(i*7%31)/31, cell, float64(i%5))
		})
	}
	var known []float64
	for i := range 31 {
		if i%10 != 3 {
			known = append(known, float64(i*i))
		}
	}
	missingWords := []string{"", "NA", "NaN", "?"}
	enterTempFolder(t, map[string]string{"a.csv": rows(func(i int) string { return missingWords[i/10] }),
		"none.csv": "a,b\nNA,1\nNA,2\nNA,3\n"})
	for method, fill := range map[string]float64{"median": (known[13] + known[14]) / 2, "mean": stat.Mean(known, nil)} {
		writeFile(t, ".", "filled.csv", rows(func(int) string { return strconv.FormatFloat(fill, 'g', -1, 64) }))
		for _, scale := range []string{"none", "standard"} {
			common := " --sigma 2 --task regression --scale " + scale + " --out "
			got := runScript(t,
				"$ fit --train a.csv --test a.csv --impute "+method+common+"a.krr\nnote: --impute "+method+
					": filled 3 missing values in the training rows, in 1 of 2 features"+`
$ verify a.krr --train a.csv
	the points are those of the model
$ predict --model a.krr --in a.csv --digits full`)
			want := runScript(t, "$ fit --train filled.csv"+common+`b.krr
1$ predict --model b.krr --in a.csv
	in 31 rows 3 cells are missing: "b" 3
$ predict --model b.krr --in filled.csv --digits full`)
			testkit.Near(t, maxPredictionDifference(t, got, want, 31), 0, 1e-9, method, scale)
		}
	}
	runScript(t, `
1$ fit --train none.csv --impute mean
	"a" has no value at all`)
}

// TestLengthScales checks that one length scale for each feature gives the same predictions as a fit with σ = 1 to
// features that are divided by their length scales, after any scaling. A matrix in a file replaces the length scales in
// the same way.
func TestLengthScales(t *testing.T) {
	rows := func(a, b float64) string {
		return generateLines(40, func(i int) string {
			x, z := float64(i*7%40)/10, float64(i*11%40)/5
			return fmt.Sprintf("%g,%g,%g\n", x/a, z/b, math.Sin(x)+z)
		})
	}
	enterTempFolder(t, map[string]string{"a.csv": rows(1, 1), "d.csv": rows(2, 0.25), "sigma.txt": "2\n0.25\n"})
	fitAndPredict := func(train, args string) (string, map[string]any) {
		t.Helper()
		out := runScript(t, fmt.Sprintf(`
$ fit --train %s --test %[1]s --lambda 0.1 --out m.krr --json r.json %s
$ verify m.krr --train %[1]s
	proved
$ predict --model m.krr --in %[1]s`, train, args))
		return out, readReport(t, "r.json")
	}
	want, _ := fitAndPredict("d.csv", "--sigma 1 --scale none")
	for _, sigma := range []string{"2,0.25", "sigma.txt"} {
		got, r := fitAndPredict("a.csv", "--scale none --sigma "+sigma)
		runScript(t, "$ model info --model m.krr\nscaling      length scales 2, 0.25")
		if difference := maxPredictionDifference(t, got, want, 40); !(difference <= 1e-9) ||
			r["kernel"].(map[string]any)["sigma"] != 1.0 || r["scaling"] != "length scales 2, 0.25" {
			t.Errorf("--sigma %s: scaling %v, kernel %v; predictions differ by %g", sigma, r["scaling"], r["kernel"],
				difference)
		}
	}
	writeFile(t, ".", "l.txt", "0.5 0 0 4")
	matrix, r := fitAndPredict("a.csv", "--scale none --sigma l.txt")
	runScript(t, "$ model info --model m.krr\nscaling      distance by a 2×2 matrix")
	if difference := maxPredictionDifference(t, matrix, want, 40); !(difference <= 1e-9) ||
		r["scaling"] != "distance by a 2×2 matrix" {
		t.Errorf("--sigma l.txt: scaling %v; predictions differ by %g", r["scaling"], difference)
	}
	common, _ := fitAndPredict("a.csv", "--sigma 1.5 --scale standard")
	repeated, _ := fitAndPredict("a.csv", "--sigma 1.5,1.5 --scale standard")
	testkit.Near(t, maxPredictionDifference(t, repeated, common, 40), 0, 1e-4, "equal length scales and a common one")
	runScript(t, `
1$ fit --train a.csv --sigma 1,2,3
	krrlab: 3 length scales for 2 features: want one for each
1$ fit --train a.csv --sigma 1,2,3 --drop 0
	krrlab: 3 length scales for 1 feature: want one for each
2$ fit --train a.csv --sigma 1,b
	krrlab: --sigma: "b": want a number (see krrlab fit --help)
1$ fit --train a.csv --sigma 1,0
	krrlab: the length scale of feature 1 is 0: want a positive number
2$ fit --train a.csv --sigma none.txt
	krrlab: --sigma "none.txt": want a number, one for each feature separated by commas, or a file of numbers
2$ fit --train a.csv --kernel polynomial --sigma 1,2
	krrlab: --sigma: the kernel polynomial(gamma=0.01, coef0=1, degree=3) has no length scale (kernel.Scaled) (see krrlab fit --help)
1$ statdim --train a.csv --sigma 1,2,3 --precond "features features=10"
	krrlab: 3 length scales for 2 features: want one for each
1$ fit --data synthetic-regression --n 50 --sigma 1,2
	krrlab: 2 length scales for 4 features: want one for each`)
}

// TestCategorical checks that fit, its test file, verify and predict encode words as indicator columns: the predictions
// must equal those of a file whose indicator columns were written by hand. A word that the training rows do not have
// gets zeros and a note.
func TestCategorical(t *testing.T) {
	rows := func(cities ...string) string {
		return generateLines(45, func(i int) string {
			x := float64(i*7%45) / 10
			return fmt.Sprintf("%g,%s,%g\n", x, cities[i%3], math.Sin(x)+[]float64{0, 3, 7}[i%3])
		})
	}
	enterTempFolder(t, map[string]string{
		"a.csv": "x,city,y\n" + rows("ulm", "köln", "bonn"), "b.csv": "x,city=bonn,city=köln,city=ulm,y\n" +
			rows("0,0,1", "0,1,0", "1,0,0"),
		"new.csv": "x,city,y\n1,paris,1\n2,ulm,1\n",
	})
	got := runScript(t, `
$ fit --train a.csv --test new.csv --categorical city --sigma 1 --out a.krr
	note: new.csv: words that are not in the training data, whose features are all 0, with their rows, in "city": "paris" (1)
	n = 45, d = 4
$ verify a.krr --train a.csv
	the points are those of the model
$ predict --model a.krr --in new.csv
	krrlab: note: new.csv: words that
1$ fit --train a.csv
	; say krrlab fit --train a.csv --categorical city
$ predict --model a.krr --in a.csv --digits full`)
	want := runScript(t, `
$ fit --train b.csv --sigma 1 --out b.krr
$ predict --model b.krr --in b.csv`)
	if got != want || strings.Count(got, "\n") != 46 {
		t.Errorf("predicted\n%swant\n%s", got, want)
	}
}

// TestTargets checks that a fit to two targets predicts each of them as a separate fit to that target does, and reports
// the RMSE of each. The other target must not become a feature.
func TestTargets(t *testing.T) {
	featuresAt := func(i int) (x, z float64) { return float64(i*7%60) / 10, float64(i*11%60) / 10 }
	enterTempFolder(t, map[string]string{
		"a.csv": "a,x,b,z,c\n" + generateLines(60, func(i int) string {
			x, z := featuresAt(i)
			return fmt.Sprintf("%g,%g,%g,%g,%g\n", 100+math.Sin(x), x, x*z, z, -5+math.Cos(z))
		}),
		"alone.csv": "x,z\n" + generateLines(60, func(i int) string {
			x, z := featuresAt(i)
			return fmt.Sprintf("%g,%g\n", x,
				z)
		}),
	})
	for _, solver := range []string{"direct", "pcg"} {
		fit := "$ fit --train a.csv --test a.csv --task regression --sigma 1 --tol 1e-10 --out m.krr --json r.json " +
			"--solver " + solver
		together := runScript(t, fit+` --target a,c --drop b
	RMSE of each target 
$ predict --model m.krr --in a.csv --decision --out p.csv
	RMSE of each target 
$ model info m.krr
	t = 2, columns a, c, y less its means 1
	!intervals
$ verify m.krr --train a.csv --test a.csv
	t = 2
	of all targets together
$ predict --model m.krr --in alone.csv`)
		want := readReport(t, "r.json")["target_rmse"].([]any)
		for j, drop := range []string{" --target a --drop b,c", " --target c --drop b,a"} {
			single := runScript(t, fit+drop+"\n$ predict --model m.krr --in alone.csv")
			if alone, jointly := readReport(t, "r.json")["rmse"].(float64),
				want[j].(float64); math.Abs(alone-jointly) > 1e-6 {
				t.Errorf("%s%s: RMSE %v, in the separate fit %v", solver, drop, jointly, alone)
			}
			var cells strings.Builder
			for line := range strings.Lines(together) {
				row := strings.Split(strings.TrimSpace(line), ",")
				fmt.Fprintf(&cells, "%s,%s\n", row[0], row[1+j])
			}
			if difference := maxPredictionDifference(t, cells.String(), single, 60); !(difference <= 1e-3) ||
				!strings.HasPrefix(together, "row,prediction_a,prediction_c\n") {
				t.Errorf("%s%s: predictions differ by %g from the separate fit", solver, drop, difference)
			}
		}
	}
	runScript(t, `
1$ fit --train a.csv --target a,q
	krrlab: a.csv, line 1: target: no column is named "q": there are "a", "x", "b", "z", "c"
1$ fit --train a.csv --target a,a
	krrlab: a.csv, line 1: target: column 0 is in --target too
1$ fit --train a.csv --target a,b --task classification
	krrlab: a.csv, line 1: --target a,b: several targets need --task regression`)
}

// maxPredictionDifference returns the largest absolute difference between the predictions in two csv outputs of the
// given number of rows.
func maxPredictionDifference(t *testing.T, a, b string, rows int) (largest float64) {
	t.Helper()
	rowsA, rowsB := strings.Fields(a), strings.Fields(b)
	if len(rowsA) != rows+1 || len(rowsB) != rows+1 {
		t.Fatalf("%d and %d lines, want a header and %d rows", len(rowsA), len(rowsB), rows)
	}
	for i := range rows {
		var row int
		var valueA, valueB float64
		testkit.Must(fmt.Sscanf(rowsA[i+1]+" "+rowsB[i+1], "%d,%g %d,%g", &row, &valueA, &row, &valueB))
		largest = max(largest, math.Abs(valueA-valueB))
	}
	return largest
}

// TestThreshold checks that the decision threshold, given or chosen for a metric, is saved in the model and used by
// predict. Thresholds and metrics that do not fit the problem are refused.
func TestThreshold(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("x,w,y\n")
	for i := range 90 {
		y := "a"
		if i%9 == 0 || i%10 == 0 {
			y = "b"
		}
		fmt.Fprintf(&rows, "%d,%d,%s\n", i%9*2+i%2, 1+i%2, y)
	}
	enterTempFolder(t, map[string]string{"rare.csv": rows.String()})
	const fit = "fit --train rare.csv --target y --weights w --sigma 3 --lambda 1 --holdout 0.3 --json r.json --out m.krr "
	runScript(t, `$ `+fit+`--metric f1
	the best for F1 of b on 
	points, weighted
	precision
$ model info m.krr
	threshold
$ `+fit+`--threshold -0.5
	-0.5, as asked for
$ predict --model m.krr --in rare.csv
	,b
2$ `+fit+`--threshold maybe
	want a number or auto
2$ `+fit+`--metric rmse
	the answers are classes
2$ `+fit+`--metric f1 --stop labels=1%
	counts labels at the threshold 0
1$ `+fit+`--metric auc --threshold auto
	no threshold is best for AUC
$ `+fit+`--tune --metric auc --class-weights balanced
	AUC`)
}
