package cli

import (
	"math"
	"strconv"
	"testing"
)

// TestProbabilities: a column for each class, of rows left out as the fit kept or found when predicting, and how good
// they are.
func TestProbabilities(t *testing.T) {
	files(t, map[string]string{"number.csv": table(40, nil, true)})
	for _, labels := range [][]string{{"no", "yes"}, {"low", "mid", "high"}} {
		write(t, ".", "train.csv", table(150, labels, true))
		write(t, ".", "new.csv", table(90, labels, true))
		var first []string
		for _, c := range []struct{ flag, want string }{
			{"--calibrate loo", "by 150 training rows, each left out; log loss 0."}, {"--calibrate none",
				"by 150 training rows, each left out; log loss 0."},
			{"--holdout 0.4", "by 60 test rows of the fit; log loss 0."},
		} {
			script(t, "$ fit --train train.csv --target y --sigma 1.5 --lambda 0.1 --out m.krr "+c.flag+
				"\n$ predict m.krr --in new.csv --target y --probabilities --out p.csv\ncalibration error\n"+c.want)
			got := readColumns(t, "p.csv")
			for i := range 90 {
				var sum float64
				for _, l := range labels {
					v, err := strconv.ParseFloat(got["p_"+l][i], 64)
					if err != nil || !(v > 0 && v < 1) {
						t.Fatal(v, err)
					}
					sum += v
				}
				if math.Abs(sum-1) > 1e-12 {
					t.Fatalf("row %d: the sum is %g", i, sum)
				}
			}
			if column := got["p_"+labels[0]]; first == nil {
				first = column
			} else if c.flag == "--calibrate none" {
				for i, v := range column {
					a, _ := strconv.ParseFloat(v, 64)
					if b, _ := strconv.ParseFloat(first[i], 64); math.Abs(a-b) > 1e-6 {
						t.Fatalf("row %d: kept %g, recomputed %g", i, b, a)
					}
				}
			}
		}
	}
	script(t, `
$ fit --train number.csv --target y --out m.krr
2$ predict m.krr --in number.csv --probabilities
	is for regression`)
}
