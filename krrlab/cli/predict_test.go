package cli

import (
	"encoding/csv"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// priceTable returns n rows of a csv file with the given columns, in their order: x, y, and price = 3x − 2y.
func priceTable(n int, order ...string) string {
	var rows strings.Builder
	rows.WriteString(strings.Join(order, ",") + "\n")
	for i := range n {
		x, y := math.Sin(float64(i)), math.Cos(3*float64(i))
		value := map[string]float64{"price": 3*x - 2*y, "x": x, "y": y}
		for j, name := range order {
			if j > 0 {
				rows.WriteString(",")
			}
			fmt.Fprintf(&rows, "%.9g", value[name])
		}
		rows.WriteString("\n")
	}
	return rows.String()
}

// TestColumnsOfTheFit checks that fit, predict and verify find the target and the features of a file by the names of
// its columns, in any order, and refuse a file that lacks a feature. A file in a format without columns needs no names.
func TestColumnsOfTheFit(t *testing.T) {
	svm := regexp.MustCompile(`(?m)^(.*),(.*),(.*)$`) // the same rows in a format that has no columns
	_, rows, _ := strings.Cut(priceTable(40, "price", "x", "y"), "\n")
	enterTempFolder(t, map[string]string{
		"train.csv": priceTable(40, "price", "x", "y"), "last.csv": priceTable(40, "x", "y", "price"),
		"none.csv": priceTable(40, "x", "y"), "missing.csv": priceTable(40, "price", "x"),
		"swapped.csv": priceTable(40, "price", "y", "x"), "other.csv": priceTable(40, "x", "y",
			"price"), "train.svm": svm.ReplaceAllString(rows, "$1 1:$2 2:$3"),
	})
	runScript(t, "$ fit --train train.csv --target price --sigma 1 --lambda 1e-6 --solver direct --out m.krr")
	for in, scoreLine := range map[string]string{"train.csv": "R²", "last.csv": "R²", "none.csv": "!R²"} {
		runScript(t, "$ predict --model m.krr --out pred.csv --in "+in+"\n"+scoreLine)
		for i, text := range readColumns(t, "pred.csv")["prediction"] {
			value, err := strconv.ParseFloat(text, 64)
			if want := 3*math.Sin(float64(i)) - 2*math.Cos(3*float64(i)); err != nil || math.Abs(value-want) > 0.01 {
				t.Errorf("%s: row %d is predicted %s, want %g", in, i, text, want)
			}
		}
	}
	for _, line := range []string{
		"fit --train train.csv --target price --test IN", "predict --model m.krr --out p.csv --in IN",
		"verify m.krr --train IN", "verify m.krr --train train.csv --test IN",
	} {
		line = "$ " + line // IN stands for the file with other columns
		runScript(t, strings.ReplaceAll(line, "IN",
			"swapped.csv")+"\nswapped.csv: csv; separator comma (3 cells in 41 of 41 rows); header yes\n1"+
			strings.ReplaceAll(line, "IN", "missing.csv")+"\nmissing.csv, line 1: the columns \"y\" of ")
	}
	runScript(t, `
$ verify m.krr --train train.svm
	proved
$ fit --train train.csv --test other.csv --target price --solver direct
1$ predict --model m.krr --in train.csv --target prise
	"prise": there are "price", "x", "y"`)
}

// TestPredictScaled checks that predict prints the same test errors for the test file as the fit did, for every scaling
// of the features and for dense and sparse files.
func TestPredictScaled(t *testing.T) {
	sparse := func(i int) string { return fmt.Sprintf("%d 1:%d 3:0.%d 4:%d\n", i%2, i%7, i, 100-i) }
	enterTempFolder(t, map[string]string{"a.csv": randomTable(90, nil), "b.csv": randomTable(40, nil),
		"a.svm": generateLines(90, sparse),
		"b.svm": generateLines(40, sparse)})
	for _, form := range []string{"csv", "svm"} {
		for _, scale := range datasets.Scalings {
			errorLine := regexp.MustCompile(`(?m)^(?:test|training) +(.*)`)
			want := errorLine.FindStringSubmatch(runScript(t,
				fmt.Sprintf("$ fit --train a.%s --test b.%[1]s --scale %s --out m.krr", form, scale)))
			got := errorLine.FindStringSubmatch(runScript(t, "$ predict --model m.krr --out p.csv --in b."+form))
			if len(want) == 0 || len(got) == 0 || got[1] != want[1] {
				t.Errorf("%s, %s: %s, of the fit: %s", form, scale, got, want)
			}
		}
	}
}

// TestPredictBound checks the error bounds of a model that was solved to a loose tolerance. The predictions of an
// accurate model must be within the bounds of the loose model, labels that the loose model calls settled must be those
// of the accurate model, and a model file without bounds is refused. The test also requires that the two models differ,
// so that the bounds are not trivial.
func TestPredictBound(t *testing.T) {
	enterTempFolder(t, nil)
	rows := func(model string) [][]string {
		t.Helper()
		out := runScript(t, "$ predict --bound --decision --in train.csv --model "+model)
		return testkit.Must(csv.NewReader(strings.NewReader(out)).ReadAll())
	}
	number := func(s string) float64 { return testkit.Must(strconv.ParseFloat(s, 64)) }
	for name, data := range map[string]string{"regression": priceTable(80, "x", "y", "price"),
		"classes": randomTable(80, []string{"a", "b", "c"})} {
		writeFile(t, ".", "train.csv", data)
		const fit = "fit --train train.csv --sigma 1 --lambda 0.01 --solver cg --residual exact"
		runScript(t, "$ "+fit+" --tol 1e-1 --out loose")
		// The exit code does not matter: rounding may keep the fit from this tolerance.
		runCommand(t, strings.Fields(fit+" --tol 1e-12 --out exact")...)
		loose, exact := rows("loose"), rows("exact")
		boundColumn, last := slices.Index(loose[0], "bound"), len(loose[0])-1
		if boundColumn < 0 || (loose[0][last] == "settled") != (name == "classes") {
			t.Fatalf("%s: columns %v", name, loose[0])
		}
		largest := 0.0
		for i := range loose[1:] {
			looseRow, exactRow := loose[i+1], exact[i+1]
			for j := 2; j < boundColumn; j++ {
				difference := math.Abs(number(looseRow[j]) - number(exactRow[j]))
				if largest = max(largest,
					difference); difference > number(looseRow[boundColumn])+number(exactRow[boundColumn]) {
					t.Errorf("%s, row %d: %s, by the accurate model %s, bound %s", name, i, looseRow[j], exactRow[j],
						looseRow[boundColumn])
				}
			}
			if looseRow[last] == "true" && looseRow[1] != exactRow[1] {
				t.Errorf("%s, row %d: the label %s is called settled, but is %s by the accurate model", name, i,
					looseRow[1], exactRow[1])
			}
		}
		if largest < 1e-4 {
			t.Errorf("%s: the loose fit differs by only %g", name, largest)
		}
		m, err := model.Load("loose")
		if err != nil || m.ErrorBounds == nil || !m.ErrorBounds.Certain {
			t.Fatalf("%s: %v, %v", name, m.ErrorBounds, err)
		}
		m.ErrorBounds = nil
		testkit.OK(t, m.Save("old"))
		runScript(t, "1$ predict --bound --in train.csv --model old\nhas no bounds of its error")
	}
}

// TestFitStop checks that --stop chooses the criterion that ends the iteration, and that the report names it. The
// status is "converged" only if the residual met its tolerance, but every such fit exits with status 0. At most 20 % of
// the 120 labels may be open after --stop labels=20%.
func TestFitStop(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(120, []string{"a", "b", "c"})})
	const fit = `$ fit --verbose --train train.csv --sigma 1 --lambda 0.1 --precond "nystrom features=20" --json r.json --stop `
	for stop, criterion := range map[string]string{
		"anorm --tol 1e-2": "anorm", "labels=20% --tol 1e-9": "labels", "labels=0.001 --tol 0.5": "residual",
		"residual --tol 1e-2": "residual",
	} {
		runScript(t, fit+stop+"\n‖e‖_A ≤")
		report := readReport(t, "r.json")
		open, ok := report["labels_open"].(float64)
		if report["criterion"] != criterion || (report["status"] == "converged") != (criterion == "residual") ||
			!ok || (report["labels_of"] != nil) != strings.HasPrefix(stop, "labels") || criterion == "labels" &&
			open > 24 {
			t.Errorf("--stop %s: criterion %v, status %v, %v of %v labels open", stop, report["criterion"],
				report["status"], report["labels_open"], report["labels_of"])
		}
	}
	for _, stop := range []string{"labels", "labels=0", "energy"} {
		runScript(t, "2"+fit+stop+"\n--stop")
	}
}

// TestClassifierReport checks that fit, predict and verify print the same base rate, AUC and confusion matrix of a
// classifier, and that the JSON reports of fit and verify agree.
func TestClassifierReport(t *testing.T) {
	labels := []string{"lo", "mid", "hi"}
	enterTempFolder(t, map[string]string{"train.csv": randomTable(120, labels), "test.csv": randomTable(50, labels)})
	var printed []string
	for _, line := range []string{
		"fit --train train.csv --test test.csv --out m.krr --json r.json", "predict m.krr --in test.csv --out p.csv",
		"verify m.krr --train train.csv --test test.csv --json v.json",
	} {
		_, text, ok := strings.Cut("\n"+runScript(t, "$ "+line), "\nclasses ")
		rows := strings.Split(text, "\n")
		if !ok || len(rows) < 6 {
			t.Fatalf("%s: %s", line, text)
		}
		printed = append(printed, strings.Join(strings.Fields(strings.Join(rows[:5], " ")), " "))
	}
	if printed[0] != printed[1] || printed[0] != printed[2] || !strings.Contains(printed[0], "AUC 0.") ||
		!strings.Contains(printed[0], "confusion class, taken for →") {
		t.Errorf("fit, predict and verify print different or incomplete reports of the classes: %q", printed)
	}
	fitReport, verifyReport := readReport(t, "r.json"), readReport(t, "v.json")
	classes := fitReport["classes"].(map[string]any)
	if classes["base_rate"].(float64) < 0.34 || classes["auc"] == nil || len(classes["confusion"].([]any)) != 3 ||
		!reflect.DeepEqual(classes, verifyReport["classes"]) ||
		fitReport["training_error"].(float64) > fitReport["test_error"].(float64) {
		t.Errorf("the JSON of fit has the classes %v, that of verify %v", classes, verifyReport["classes"])
	}
}

// TestKeepColumns checks that predict --keep copies the chosen columns of its input file unchanged, by name and by
// number, with and without a header.
func TestKeepColumns(t *testing.T) {
	enterTempFolder(t, map[string]string{
		"train.csv": randomTable(60, nil), "bare.csv": randomRows(60, nil),
		"new.csv":   "id,c,a,b,note\n007,1,2,3,\"x, \"\"y\"\"\"\n1e3, 0.50 ,1,1,-\n",
		"plain.csv": "1,2,3\n 4,5,6.50\n", "new.svm": "1 1:2 2:3 3:1\n",
	})
	runScript(t, "$ fit --train train.csv --out m.krr\n$ fit --train bare.csv --out bare.krr")
	for _, c := range []struct{ line, head, first, second string }{
		{"m.krr --in new.csv --keep id", "row,id,prediction", "0,007,", "1,1e3,"}, {"m.krr --in new.csv --keep note,id",
			"row,note,id,prediction", `0,"x, ""y""",007,`, "1,-,1e3,"},
		{"m.krr --in new.csv --keep c,-1", "row,c,note,prediction", `0,1,"x, ""y""",`,
			"1,0.50,-,"}, {"m.krr --in new.csv --keep 0", "row,id,prediction", "0,007,", "1,1e3,"},
		{"bare.krr --in plain.csv --keep 2", "row,column 2,prediction", "0,3,",
			"1,6.50,"}, {"m.krr --in train.csv --keep y,a", "row,y,a,prediction", "0,", "1,"},
	} {
		rows := strings.Split(runScript(t, "$ predict "+c.line), "\n")
		if rows[0] != c.head || !strings.HasPrefix(rows[1], c.first) || !strings.HasPrefix(rows[2], c.second) {
			t.Errorf("%s: %q, want rows that begin with %s, %s and %s", c.line, rows[:min(3, len(rows))], c.head,
				c.first, c.second)
		}
	}
	runScript(t, `
1$ predict m.krr --in new.csv --keep nothing
	no column is named "nothing"
1$ predict m.krr --in new.csv --keep 9
	column 9
1$ predict m.krr --in new.svm --format libsvm --keep id
	--keep is for csv files`)
}

// TestDigits checks how many digits of the predictions are written to csv. With intervals, a prediction is rounded to a
// unit that is small compared with the half width of its interval, and the ends of the interval are rounded outward.
// Without intervals in the model, with --digits full and with --decision, all digits are written.
func TestDigits(t *testing.T) {
	enterTempFolder(t, map[string]string{"a.csv": randomTable(60, nil), "b.csv": randomTable(9, nil)})
	numbers := func(text string, column int) (v []float64, longest int) {
		for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
			cell := strings.Split(line, ",")[column]
			v, longest = append(v, testkit.Must(strconv.ParseFloat(cell, 64))), max(longest, len(cell))
		}
		return v, longest
	}
	runScript(t,
		"$ fit --train a.csv --holdout 0.5 --out split.krr --sigma 2\n$ fit --train a.csv --out none.krr --sigma 2")
	fullOut := runScript(t, "$ predict split.krr --in b.csv --interval 90% --digits full")
	full, digits := numbers(fullOut, 1)
	fullLow, _ := numbers(fullOut, 2)
	out := runScript(t, "$ predict split.krr --in b.csv --interval 90%\n --digits full writes all")
	short, shortDigits := numbers(out, 1)
	lo, _ := numbers(out, 2)
	hi, _ := numbers(out, 3)
	for i, v := range full {
		halfWidth := v - fullLow[i]
		if math.Abs(v-short[i]) > halfWidth/200*(1+1e-9) || lo[i] > fullLow[i] || fullLow[i]-lo[i] > halfWidth/100 ||
			hi[i] < v+halfWidth {
			t.Errorf("%g is %g in [%g, %g]; the interval begins at %g", v, short[i], lo[i], hi[i], fullLow[i])
		}
	}
	withoutIntervals, _ := numbers(runScript(t, "$ predict split.krr --in b.csv"), 1)
	if shortDigits > 7 || digits < 12 || !slices.Equal(withoutIntervals, short) {
		t.Errorf("%d and %d characters; %v without intervals, %v with them", shortDigits, digits, withoutIntervals,
			short)
	}
	decisions, _ := numbers(runScript(t, "$ predict split.krr --in b.csv --decision"), 1)
	if _, n := numbers(runScript(t, "$ predict none.krr --in b.csv"), 1); n < 12 || !slices.Equal(decisions, full) {
		t.Errorf("%d characters without intervals; %v with --decision, %v", n, decisions, full)
	}
	// The keys are a prediction, the half width of its interval and the upper end of the interval; the values are the
	// unit to which predictions are rounded, 0 for no rounding.
	for v, want := range map[[3]float64]float64{
		{5, 0.3, 5.3}: 1e-3, {72767, 1e-10, 72767}: 0, {1e3, 1e-9, 1e3}: 1e-12, {1e30, 1e26, 1e30}: 0,
		{1e24, 3e24, 2e24}: 1e22, {5, 0.3, math.Inf(1)}: 0, {5, 0.3, math.NaN()}: 0, {1, 1e-320, 1}: 0,
	} {
		p := predictions{Prediction: &model.Prediction{Decision: mat.NewDense(2, 1, []float64{v[0], 0})}}
		p.intervals = &interval.Intervals{Lo: mat.NewDense(2, 1, []float64{v[0] - v[1], -v[1]}),
			Hi: mat.NewDense(2, 1, []float64{v[2], v[1]})}
		if p.setUnit(nil); math.Abs(p.unit-want) > 1e-9*want {
			t.Errorf("%v: unit %g, want %g", v, p.unit, want)
		}
	}
	// The keys are a number, the unit and the direction of rounding: 0 is to nearest, −1 down and 1 up.
	for v, want := range map[[3]float64]string{{1234.5, 100, 0}: "1200", {-0.05, 1, 0}: "0", {0.3, 0.1, -1}: "0.3",
		{0.30000001, 0.1, 1}: "0.4", {-1.26, 0.01, 1}: "-1.26", {149, 100, 1}: "200"} {
		if got := formatMultiple(v[0], v[1], v[2]); got != want {
			t.Errorf("%g rounded to the unit %g in the direction %g: %s, want %s", v[0], v[1], v[2], got, want)
		}
	}
}
