package interval

import (
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestCoverageOfData checks on five data sets that the coverage of the conformal methods is within 2 % of the level,
// with 1,000 rows of the fit and 1,000 scores, on average over 5 random splits.
func TestCoverageOfData(t *testing.T) {
	suite.RealData(t)
	for _, c := range []struct {
		name          string
		sigma, lambda float64
	}{{"abalone", 4, 0.1}, {"cal-housing", 2, 0.1}, {"protein", 2, 0.1}, {"usps", 16, 0.01},
		{"synthetic-classes", 1, 0.1}} {
		pair := testkit.Must(datasets.Load(t.Context(), c.name, &datasets.LoadOptions{Scale: "none"}))
		levels, methods := []float64{0.8, 0.9, 0.95}, []string{Split, Jackknife, JackknifePlus}
		// Sets at a level below the share of correct labels would cover too often.
		if pair.Train.Task == datasets.Classification {
			levels, methods = []float64{0.96, 0.98, 0.99}, methods[:2]
		}
		got := meanCoverage(t, pair.Train, 1000, 1000, 5, kernel.Gaussian{Sigma: c.sigma}, c.lambda, levels...)
		for _, method := range methods {
			t.Logf("%s, %s: %.3f", c.name, method, got[method])
			for j, share := range got[method] {
				testkit.Near(t, share, levels[j], 0.02, c.name, method, 100*share, 100*levels[j])
			}
		}
	}
}
