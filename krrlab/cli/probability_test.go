package cli

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestProbabilities: a column for each class, of rows left out as the fit kept or found when predicting, and how good they are.
func TestProbabilities(t *testing.T) {
	dir := t.TempDir()
	m, pred := filepath.Join(dir, "m.krr"), filepath.Join(dir, "p.csv")
	for _, labels := range [][]string{{"no", "yes"}, {"low", "mid", "high"}} {
		train, new := write(t, dir, "train.csv", table(150, labels, true)), write(t, dir, "new.csv", table(90, labels, true))
		var first []string
		for _, c := range []struct{ flag, want string }{
			{"--calibrate=loo", "by 150 training rows, each left out; log loss 0."}, {"--calibrate=none", "by 150 training rows, each left out; log loss 0."},
			{"--holdout=0.4", "by 60 test rows of the fit; log loss 0."},
		} {
			if code, _, errs := command(t, "fit", "--train", train, "--target", "y", "--sigma", "1.5", "--lambda", "0.1", "--out", m, c.flag); code != 0 {
				t.Fatalf("exit %d: %s", code, errs)
			}
			code, out, errs := command(t, "predict", m, "--in", new, "--target", "y", "--probabilities", "--out", pred)
			if code != 0 || !strings.Contains(out, c.want) || !strings.Contains(out, "calibration error") {
				t.Errorf("%v: exit %d, %s%s", c, code, out, errs)
				continue
			}
			got := readColumns(t, pred)
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
			} else if c.flag == "--calibrate=none" {
				for i, v := range column {
					a, _ := strconv.ParseFloat(v, 64)
					if b, _ := strconv.ParseFloat(first[i], 64); math.Abs(a-b) > 1e-6 {
						t.Fatalf("row %d: kept %g, found anew %g", i, b, a)
					}
				}
			}
		}
	}
	train := write(t, dir, "number.csv", table(40, nil, true))
	if code, _, errs := command(t, "fit", "--train", train, "--target", "y", "--out", m); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := command(t, "predict", m, "--in", train, "--probabilities"); code != exitUsage || !strings.Contains(errs, "is for regression") || strings.Count(errs, "\n") != 1 {
		t.Errorf("regression: exit %d, %s", code, errs)
	}
}
