package interval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// seeds returns the number of draws of a coverage test, which is few by default and many in the long suite.
func seeds(few, many int) int {
	if os.Getenv("KRRLAB_LONG") != "" {
		return many
	}
	return few
}

// covers fails the test unless the covered share of n draws is the level within 3.5 standard errors. The variance of
// one draw is at most v. If over is set, a larger share is allowed.
func covers(t *testing.T, name string, share, level float64, n int, v float64, over bool) {
	t.Helper()
	if tolerance := 3.5 * math.Sqrt(v/float64(n)); share < level-tolerance || share > level+tolerance && !over {
		t.Errorf("%s: %.2f %% of %d draws are covered, want %.4g %% ± %.2g %%", name, 100*share, n, 100*level, 100*tolerance)
	}
}

// zipf returns n rows of classes. The share of class k is proportional to 1/k, and its rows are near one point of a
// line.
func zipf(n, classes int, g *rand.Rand) *datasets.Dataset {
	x, d := points.NewDense(n, 1, nil), &datasets.Dataset{Name: "zipf", Task: datasets.Classification}
	for c := range classes {
		d.Labels = append(d.Labels, fmt.Sprint(c))
	}
	var sum float64
	for c := range classes {
		sum += 1 / float64(c+1)
	}
	for i := range n {
		rest, c := g.Float64()*sum, 0
		for ; rest > 1/float64(c+1) && c < classes-1; c++ {
			rest -= 1 / float64(c+1)
		}
		d.Class, x.Data[i] = append(d.Class, c), float64(c*7%classes)+0.7*g.NormFloat64()
	}
	d.X = x
	return d
}

// TestHoldoutCovers checks that sets from scores of rows held out by Holdout cover at their level even if many
// classes have few rows. Some held-out rows must have labels that the fit does not know, otherwise the test would
// check little.
func TestHoldoutCovers(t *testing.T) {
	draws := seeds(40, 400)
	const n, level = 120, 0.8
	var covered, unknown float64
	for seed := range draws {
		g := rand.New(rand.NewPCG(uint64(seed), 8))
		d, test := zipf(n, 60, g).WithoutUnusedLabels(), zipf(400, 60, g) // a file has the labels of its rows
		train, calibration, err := d.Holdout(0.5, uint64(seed))
		testkit.OK(t, err)
		m := fit(t, train, kernel.Gaussian{Sigma: 1}, 0.1)
		c := testkit.Must(CalibrateSplit(train, predict(t, m, calibration), calibration))
		p := predict(t, m, test)
		v := testkit.Must(FromScores(c, p, level))
		covered += v.Coverage(p, test) / float64(draws)
		unknown += v.Unknown / float64(draws)
	}
	covers(t, "Zipf", covered, level, draws, 0.8*0.2/61+0.16/400, true)
	if unknown < 0.05 {
		t.Errorf("%.2g %% of the rows held out have labels that the fit does not know", 100*unknown)
	}
}

// TestLevels checks that every level that the number of scores allows has intervals, and that any other level is
// refused with a line that says how many scores are needed.
func TestLevels(t *testing.T) {
	for _, m := range []int{1, 19, 1000} {
		scores := mat.NewDense(m, 1, nil)
		p := &model.Prediction{Value: []float64{1}, Decision: mat.NewDense(1, 1, []float64{1})}
		for _, level := range []float64{5e-324, 1e-300, 1e-12, 1e-9, 0.04, 0.5, 0.95, 0.9501, 1 - 1e-9, 1 - 0x1p-53} {
			v, err := FromScores(&model.Calibration{Method: Split, Scores: scores}, p, level)
			if fits := level <= float64(m)/float64(m+1)+1e-12; (err == nil) != fits ||
				err == nil && v.Lo.At(0, 0) != 1 {
				t.Errorf("%d scores, level %g: %v", m, level, err)
			}
			if err != nil && (!strings.Contains(err.Error(), "want at least") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%d scores, level %g: %v", m, level, err)
			}
		}
	}
}

// TestDoubt checks that scores of rows that repeat one another, or rows of the fit, have no guarantee, nor do those of
// rows without groups if the rows of the fit have given groups.
func TestDoubt(t *testing.T) {
	d := datasets.SyntheticRegression(60, 2, 0.3, 1)
	train := d.Slice(0, 30)
	m := fit(t, train, kernel.Gaussian{Sigma: 1}, 0.1)
	grouped := *train
	grouped.Repeats = &datasets.Repeats{Rule: "groups", RowKind: datasets.RowKindNewGroup, Grouped: 20}
	for name, c := range map[string]struct {
		d    *datasets.Dataset
		want string
	}{
		"groups":      {d.Slice(30, 60), "not guaranteed: the groups of the test rows"},
		"new":         {d.Slice(30, 60), "covers with probability 0.8 at least"},
		"one another": {d.Subset([]int{30, 31, 32, 33, 31, 31}), "2 of 6 rows are copies of others"},
		"the fit's":   {d.Slice(28, 40), "2 of 12 rows are copies of others"},
	} {
		fitted := train
		if name == "groups" {
			fitted = &grouped
		}
		s := testkit.Must(CalibrateSplit(fitted, predict(t, m, c.d), c.d))
		v, err := FromScores(s, predict(t, m, train), 0.8)
		if err != nil || !strings.Contains(v.Guarantee(), c.want) {
			t.Errorf("%s: %s, %v", name, v.Guarantee(), err)
		}
	}
}
