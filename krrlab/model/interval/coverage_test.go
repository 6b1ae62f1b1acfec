package interval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// zipfClasses returns n rows of classes. The share of class k is proportional to 1/k (Zipf's law), and the rows of a
// class are near one point of a line.
func zipfClasses(n, classes int, random *rand.Rand) *datasets.Dataset {
	x, d := points.NewDense(n, 1, nil), &datasets.Dataset{Name: "zipf", Task: datasets.Classification}
	for class := range classes {
		d.Labels = append(d.Labels, fmt.Sprint(class))
	}
	var sum float64
	for class := range classes {
		sum += 1 / float64(class+1)
	}
	for i := range n {
		remaining, class := random.Float64()*sum, 0
		for ; remaining > 1/float64(class+1) && class < classes-1; class++ {
			remaining -= 1 / float64(class+1)
		}
		d.Class, x.Data[i] = append(d.Class, class), float64(class*7%classes)+0.7*random.NormFloat64()
	}
	d.X = x
	return d
}

// TestCoverageOfRareClasses checks that sets from scores of rows held out by Holdout cover at least at their level even
// if many classes have few rows. Some held-out rows must have labels that the fit does not know, otherwise the test
// would check little.
func TestCoverageOfRareClasses(t *testing.T) {
	draws := suite.Scale(40, 400, 400)
	const n, level = 120, 0.8
	var covered, unknown float64
	for seed := range draws {
		random := rand.New(rand.NewPCG(uint64(seed), 8))
		// A file has only the labels of its rows.
		d, test := zipfClasses(n, 60, random).WithoutUnusedLabels(), zipfClasses(400, 60, random)
		train, calibration, err := d.Holdout(0.5, uint64(seed))
		testkit.OK(t, err)
		m := fit(t, train, kernel.Gaussian{Sigma: 1}, 0.1)
		scores := testkit.Must(CalibrateSplit(train, predict(t, m, calibration), calibration))
		p := predict(t, m, test)
		sets := testkit.Must(FromScores(scores, p, level))
		covered += sets.Coverage(p, test) / float64(draws)
		unknown += sets.UnknownShare / float64(draws)
	}
	// The variance of the share of a draw is that of the quantile of 60 scores and of the labels of 400 test rows.
	variance := level*(1-level)/61 + level*(1-level)/400
	if tolerance := 3.5 * math.Sqrt(variance/float64(draws)); covered < level-tolerance {
		t.Errorf("%.2f %% of the rows of %d draws are covered, want at least %.4g %% − %.2g %%", 100*covered, draws,
			100*level, 100*tolerance)
	}
	if unknown < 0.05 {
		t.Errorf("%.2g %% of the rows held out have labels that the fit does not know, want 5 %%", 100*unknown)
	}
}

// TestReachableLevels checks that every level up to m/(m+1) has intervals from m scores, and that any other level is
// refused with a line that says how many scores are needed.
func TestReachableLevels(t *testing.T) {
	for _, count := range []int{1, 19, 1000} {
		scores := mat.NewDense(count, 1, nil)
		p := &model.Prediction{Value: []float64{1}, Decision: mat.NewDense(1, 1, []float64{1})}
		for _, level := range []float64{5e-324, 1e-300, 1e-12, 1e-9, 0.04, 0.5, 0.95, 0.9501, 1 - 1e-9, 1 - 0x1p-53} {
			intervals, err := FromScores(&model.Calibration{Method: Split, Scores: scores}, p, level)
			if reachable := level <= float64(count)/float64(count+1)+1e-12; (err == nil) != reachable ||
				err == nil && intervals.Lo.At(0, 0) != 1 ||
				err != nil && (!strings.Contains(err.Error(), "want at least") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%d scores, level %g, reachable: %t; intervals %v, error %v", count, level, reachable,
					intervals, err)
			}
		}
	}
}

// TestRepeatedScoreRows checks that scores of rows that repeat one another, or rows of the fit, have no guarantee, nor
// do those of rows without groups if the rows of the fit have given groups.
func TestRepeatedScoreRows(t *testing.T) {
	d := datasets.SyntheticRegression(60, 2, 0.3, 1)
	train := d.Slice(0, 30)
	m := fit(t, train, kernel.Gaussian{Sigma: 1}, 0.1)
	grouped := *train
	grouped.Repeats = &datasets.Repeats{Rule: "groups", RowKind: datasets.RowKindNewGroup, Grouped: 20}
	for _, c := range []struct {
		fitRows, scoreRows *datasets.Dataset
		want               string
	}{
		{&grouped, d.Slice(30, 60), "not guaranteed: the groups of the test rows"},
		{train, d.Slice(30, 60), "covers with probability 0.8 at least"},
		{train, d.Subset([]int{30, 31, 32, 33, 31, 31}), "2 of 6 rows are copies of others"},
		{train, d.Slice(28, 40), "2 of 12 rows are copies of others"},
	} {
		scores := testkit.Must(CalibrateSplit(c.fitRows, predict(t, m, c.scoreRows), c.scoreRows))
		testkit.Contains(t, testkit.Must(FromScores(scores, predict(t, m, train), 0.8)).Guarantee(), c.want)
	}
}
