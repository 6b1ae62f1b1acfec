package cli

import (
	"bytes"
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// readColumns returns the cells of each column of a csv file by the name of the column.
func readColumns(t *testing.T, name string) map[string][]string {
	t.Helper()
	rows := testkit.Must(csv.NewReader(bytes.NewReader(readFile(t, name))).ReadAll())
	columns := map[string][]string{}
	for _, row := range rows[1:] {
		for j, cell := range row {
			columns[rows[0][j]] = append(columns[rows[0][j]], cell)
		}
	}
	return columns
}

// TestIntervals checks prediction intervals of every method. Each interval must contain its prediction, the output must
// name the method and its guarantee, and about 90 % of the answers of new rows must be inside. Leave-one-out scores
// that predict computes again must give the same widths as saved ones. Invalid levels and methods, and methods without
// the scores that they need, are refused.
func TestIntervals(t *testing.T) {
	lines := strings.Split(randomTable(700, nil), "\n") // the header and 700 rows; the first 300 are training rows
	enterTempFolder(t, map[string]string{"train.csv": strings.Join(lines[:301], "\n"),
		"new.csv": strings.Join(append(lines[:1:1], lines[301:]...), "\n")})
	const predict = "$ predict --model m.krr --in new.csv --out pred.csv --interval "
	number := func(text string) float64 { return testkit.Must(strconv.ParseFloat(text, 64)) }
	// measured returns the number of answers inside their intervals, and the sum of the widths of the intervals.
	measured := func() (inside, width float64) {
		got := readColumns(t, "pred.csv")
		for i, text := range got["lo"] {
			lo, mid, hi := number(text), number(got["prediction"][i]), number(got["hi"][i])
			y := number(strings.Split(lines[301+i], ",")[3]) // the columns are a, b, c and y
			if !(lo < mid && mid < hi) {
				t.Fatalf("row %d: the prediction %g is not in [%g, %g]", i, mid, lo, hi)
			}
			if width += hi - lo; lo <= y && y <= hi {
				inside++
			}
		}
		return inside, width
	}
	type predictCase struct{ fit, flags string } // flags of fit and of predict, without the first "--"
	widths := map[predictCase]float64{}
	for _, c := range []struct{ fit, flags, want string }{
		{"holdout 0.4", "", "90 % by split, covers with probability 0.9 at least"},
		{"holdout 0.4", "--method jackknife", "by jackknife, coverage mostly near 0.9, not guaranteed"},
		{"calibrate loo", "", "by jackknife, coverage mostly near 0.9"},
		{"calibrate loo", "--method jackknife+", "by jackknife+, covers with probability 0.8 at least"},
		{"calibrate none", "", "by jackknife+"},
		{"calibrate none", "--method jackknife", "by jackknife, "},
		{"calibrate none", "--method posterior",
			"by posterior, covers with probability 0.9 if the answers are a Gaussian process"},
	} {
		runScript(t, "$ fit --train train.csv --target y --sigma 1.5 --lambda 0.01 --out m.krr --"+c.fit+"\n"+predict+
			"90% "+c.flags+"\n"+c.want+"\nof the 400 answers are inside")
		inside, width := measured()
		widths[predictCase{c.fit, c.flags}] = width
		// The coverage of 400 rows by at least 120 scores has a standard deviation of about 3 %,
		// √(0.9·0.1·(1/400+1/120)); the tolerance is three of them.
		testkit.Near(t, inside/400, 0.9, 0.09, c)
	}
	saved, recomputed := widths[predictCase{"calibrate loo", ""}],
		widths[predictCase{"calibrate none", "--method jackknife"}]
	if !(math.Abs(saved/recomputed-1) < 1e-9) {
		t.Errorf("widths with saved scores %g, with recomputed scores %g", saved, recomputed)
	}
	// The last case, posterior, also writes standard deviations.
	if std := readColumns(t, "pred.csv")["std"]; len(std) != 400 || !(number(std[0]) > 0) {
		t.Errorf("%d standard deviations, want 400 positive ones", len(std))
	}
	runScript(t, predict+"57% --method jackknife\n57 % by jackknife, coverage mostly near 0.57,\n")
	runScript(t, `
2$ predict --model m.krr --in new.csv --interval 90
	--interval "90": want a level
2$ predict --model m.krr --in new.csv --method split
	--method goes with --interval
2$ predict --model m.krr --in new.csv --interval 0.9 --method magic
	want one of auto, split
1$ predict --model m.krr --in new.csv --interval 0.9 --method split
	fit with --holdout or --test
2$ fit --train train.csv --calibrate test --out m.krr
	there are no test rows
2$ fit --train train.csv --calibrate loo --weights w --out m.krr
	does not go with weights
2$ fit --train train.csv --calibrate loo --class-weights low=2 --out m.krr
	does not go with weights`)
}

// TestLabelSets checks that a classifier predicts a set of labels for each row that contains the predicted label, and
// that some sets have several labels at the level 97 %. The method jackknife+ is refused for classes.
func TestLabelSets(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(300, []string{"low", "mid", "high"})})
	runScript(t, "$ fit --train train.csv --sigma 1.5 --holdout 0.4 --out m.krr")
	for _, method := range []string{"split", "jackknife"} {
		runScript(t, "$ predict --model m.krr --in train.csv --interval 0.97 --out pred.csv --method "+method+
			"\n97 % by "+method+"\nlabels a set; ")
		got, additional := readColumns(t, "pred.csv"), 0
		for i, set := range got["set"] {
			if !strings.Contains("|"+set+"|", "|"+got["prediction"][i]+"|") {
				t.Errorf("%s: row %d: %s is not in %s", method, i, got["prediction"][i], set)
			}
			additional += strings.Count(set, "|")
		}
		if additional == 0 {
			t.Errorf("%s: no set has two labels", method)
		}
	}
	runScript(t, "1$ predict --model m.krr --in train.csv --interval 0.9 --method jackknife+\ntake split or jackknife")
}

// TestUnsolvedIntervals checks a model whose coefficients are too far from the solution for leave-one-out formulas. Its
// fit with --calibrate loo is an error, but the model is written. Every method of predict that uses leave-one-out
// refuses this model. A fit that also misses its tolerance reports both problems.
func TestUnsolvedIntervals(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(200, nil)})
	runScript(t, strings.ReplaceAll(`
1$ fit --train train.csv --target y --sigma 1.5 --lambda 1e-6 --solver cg --tol 0.5 --calibrate loo --out m.krr
	FAR
	converged
1$ predict m.krr --in train.csv --interval 90% --method auto
	FAR
1$ predict m.krr --in train.csv --interval 90% --method jackknife
	FAR
1$ predict m.krr --in train.csv --interval 90% --method jackknife+
	FAR`, "FAR", "too far from the solution"))
	code, _, stderr := runCommand(t,
		strings.Fields("fit --train train.csv --sigma 1.5 --lambda 1e-6 --solver cg --tol 1e-8 --max-iter 2 "+
			"--calibrate loo --out few.krr")...)
	if code != exitNotConverged || !strings.Contains(stderr, "too far from the solution") ||
		!strings.Contains(stderr, "not converged") {
		t.Errorf("a fit that does not converge: exit %d, want %d and both reasons: %s", code, exitNotConverged, stderr)
	}
}
