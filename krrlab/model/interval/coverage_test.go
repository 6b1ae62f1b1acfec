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

// seeds is how many draws a test of coverage takes: few by default.
func seeds(few, many int) int {
	if os.Getenv("KRRLAB_LONG") != "" {
		return many
	}
	return few
}

// covers fails unless a share of n draws, each of the variance v at most, is the level within 3.5 standard errors, or
// above if over is set.
func covers(t *testing.T, name string, share, level float64, n int, v float64, over bool) {
	t.Helper()
	if off := 3.5 * math.Sqrt(v/float64(n)); share < level-off || share > level+off && !over {
		t.Errorf("%s: %.2f %% of %d draws are covered, want %.4g %% ± %.2g %%", name, 100*share, n, 100*level, 100*off)
	}
}

// zipf returns n rows of classes whose shares fall as 1/k, about the points of a line that are theirs.
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
		u, c := g.Float64()*sum, 0
		for ; u > 1/float64(c+1) && c < classes-1; c++ {
			u -= 1 / float64(c+1)
		}
		d.Class, x.Data[i] = append(d.Class, c), float64(c*7%classes)+0.7*g.NormFloat64()
	}
	d.X = x
	return d
}

// TestHoldoutCovers: sets by scores of rows that Holdout took cover at their level where many classes have few rows.
func TestHoldoutCovers(t *testing.T) {
	draws := seeds(40, 400)
	const n, level = 120, 0.8
	var in, unknown float64
	for seed := range draws {
		g := rand.New(rand.NewPCG(uint64(seed), 8))
		d, at := zipf(n, 60, g).WithoutUnusedLabels(), zipf(400, 60, g) // a file has the labels of its rows
		train, held, err := d.Holdout(0.5, uint64(seed))
		testkit.OK(t, err)
		m := fit(t, train, kernel.Gaussian{Sigma: 1}, 0.1)
		c := testkit.Must(Calibrate(train, predict(t, m, held), held))
		p := predict(t, m, at)
		v := testkit.Must(FromScores(c, p, level))
		in += v.Coverage(p, at) / float64(draws)
		unknown += v.Unknown / float64(draws)
	}
	covers(t, "Zipf", in, level, draws, 0.8*0.2/61+0.16/400, true)
	if unknown < 0.05 {
		t.Errorf("%.2g %% of the rows held out have labels that the fit does not know", 100*unknown)
	}
}

// TestLevels: every level has a rank among the scores, or is refused in a line that says how many are wanted.
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

// TestDoubt: scores of rows that repeat one another or rows of the fit have no guarantee.
func TestDoubt(t *testing.T) {
	d := datasets.SyntheticRegression(60, 2, 0.3, 1)
	train := d.Slice(0, 30)
	m := fit(t, train, kernel.Gaussian{Sigma: 1}, 0.1)
	for name, c := range map[string]struct {
		d    *datasets.Dataset
		want string
	}{
		"new":         {d.Slice(30, 60), "covers with probability 0.8 at least"},
		"one another": {d.Subset([]int{30, 31, 32, 33, 31, 31}), "2 of 6 rows are copies of others"},
		"the fit's":   {d.Slice(28, 40), "2 of 12 rows are copies of others"},
	} {
		s := testkit.Must(Calibrate(train, predict(t, m, c.d), c.d))
		v, err := FromScores(s, predict(t, m, train), 0.8)
		if err != nil || !strings.Contains(v.Guarantee(), c.want) {
			t.Errorf("%s: %s, %v", name, v.Guarantee(), err)
		}
	}
}
