package cli

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestProbabilities checks predict --probabilities with two and three classes. There is one column for each class, its
// values are between 0 and 1, and each row sums to 1. The calibration uses test rows or leave-one-out values of the
// training rows, and values that predict computes again must agree with the saved ones. Regression has no
// probabilities.
func TestProbabilities(t *testing.T) {
	enterTempFolder(t, map[string]string{"number.csv": randomTable(40, nil)})
	for _, labels := range [][]string{{"no", "yes"}, {"low", "mid", "high"}} {
		writeFile(t, ".", "train.csv", randomTable(150, labels))
		writeFile(t, ".", "new.csv", randomTable(90, labels))
		var saved []string
		for _, c := range []struct{ flag, want string }{
			{"--calibrate loo", "by 150 training rows, each left out; log loss 0."}, {"--calibrate none",
				"by 150 training rows, each left out; log loss 0."},
			{"--holdout 0.4", "by 60 test rows of the fit; log loss 0."},
		} {
			runScript(t, "$ fit --train train.csv --target y --sigma 1.5 --lambda 0.1 --out m.krr "+c.flag+
				"\n$ predict m.krr --in new.csv --target y --probabilities --out p.csv\ncalibration error\n"+c.want)
			got := readColumns(t, "p.csv")
			for i := range 90 {
				var sum float64
				for _, label := range labels {
					v, err := strconv.ParseFloat(got["p_"+label][i], 64)
					if err != nil || !(v > 0 && v < 1) {
						t.Fatal(v, err)
					}
					sum += v
				}
				if math.Abs(sum-1) > 1e-12 {
					t.Fatalf("row %d: the sum is %g", i, sum)
				}
			}
			if column := got["p_"+labels[0]]; saved == nil {
				saved = column
			} else if c.flag == "--calibrate none" {
				for i, v := range column {
					recomputed, _ := strconv.ParseFloat(v, 64)
					if kept, _ := strconv.ParseFloat(saved[i], 64); math.Abs(recomputed-kept) > 1e-6 {
						t.Fatalf("row %d: kept %g, recomputed %g", i, kept, recomputed)
					}
				}
			}
		}
	}
	// The test rows of the fit calibrated it, in this or another order, and the training rows are those of the fit.
	writeFile(t, ".", "train.csv", randomTable(150, []string{"no", "yes"}))
	lines := strings.Split(strings.TrimSpace(randomTable(90, []string{"no", "yes"})), "\n")
	slices.Reverse(lines[1:])
	writeFile(t, ".", "test.csv", randomTable(90, []string{"no", "yes"}))
	writeFile(t, ".", "reversed.csv", strings.Join(lines, "\n"))
	writeFile(t, ".", "other.csv", strings.Join(strings.Split(randomTable(91, []string{"no", "yes"}), "\n")[:91], "\n"))
	runScript(t, `
$ fit --train train.csv --test test.csv --target y --sigma 1.5 --lambda 0.1 --out m.krr
$ predict m.krr --in test.csv --target y --probabilities --out p.csv
	the model was calibrated on these rows, so that they do not test its intervals and probabilities
$ predict m.krr --in reversed.csv --target y --interval 90% --out p.csv
	the model was calibrated on these rows
$ predict m.krr --in test.csv --target y --out p.csv
	!calibrated
$ predict m.krr --in other.csv --target y --probabilities --out p.csv
	!calibrated
$ predict m.krr --in train.csv --target y --probabilities --out p.csv
	the model was fitted to these rows, so that they do not test its intervals and probabilities`)
	runScript(t, `
$ fit --train number.csv --target y --out m.krr
2$ predict m.krr --in number.csv --probabilities
	is for regression`)
}
