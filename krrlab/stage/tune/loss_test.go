package tune

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/model"
)

// TestErrorCovers checks that the interval of an RMSE covers the true one nearly as often as stated, even for few rows.
// For one row nothing is known.
func TestErrorCovers(t *testing.T) {
	const trials = 2000
	for n, least := range map[int]float64{3: 0.85, 5: 0.89, 20: 0.90, 100: 0.92} {
		covered := 0
		for seed := range trials {
			l := &loss{rows: make([]float64, n)}
			g := rng.New(uint64(seed))
			for i := range l.rows {
				e := 3 * g.Normal(uint64(i))
				l.rows[i] = e * e
			}
			if v, lo, hi := l.Error(); lo <= 3 && 3 <= hi && lo <= v && v <= hi {
				covered++
			}
		}
		if share := float64(covered) / trials; share < least {
			t.Errorf("%d rows: %g of the intervals cover", n, share)
		}
	}
	if v, lo, hi := (&loss{rows: []float64{4}}).Error(); v != 2 || lo != 0 || !math.IsInf(hi, 1) {
		t.Errorf("of one row %g in [%g, %g]", v, lo, hi)
	}
}

// TestSmoothedLossIgnoresScale checks that a factor of all scores, which changes no label, does not change the loss by
// which the search compares points. Random scores of four classes give the wrong label to three of four rows, and
// scores near zero must not look better than that.
func TestSmoothedLossIgnoresScale(t *testing.T) {
	const n = 400
	for _, metric := range []model.Metric{model.ErrorRate, model.BalancedError, model.F1} {
		for _, columns := range []int{1, 4} {
			y, f, e := mat.NewDense(n, columns, nil), mat.NewDense(n, columns, nil), mat.NewDense(n, columns, nil)
			g := rng.New(3)
			for i := range n {
				for j := range columns {
					y.Set(i, j, -1)
					f.Set(i, j, g.Normal(uint64(i*columns+j)))
				}
				if class := i % max(columns, 2); columns > 1 {
					y.Set(i, class, 1)
				} else {
					y.Set(i, 0, float64(2*class-1))
				}
			}
			j := &judgment{metric: metric, positiveClass: 1}
			smoothed := func(factor float64) float64 {
				e.Scale(-factor, f)
				e.Add(e, y)
				mean, _ := meanAndError(j.loss(y, e).smoothed)
				return mean
			}
			want := smoothed(1)
			for _, factor := range []float64{1e-6, 0.1, 30} {
				if got := smoothed(factor); math.Abs(got-want) > 1e-6 {
					t.Errorf("%s, %d columns: smoothed loss %.4f of scores, %.4f of %g times these", metric, columns,
						want, got, factor)
				}
			}
			if rows, _ := meanAndError(j.loss(y, e).rows); math.Abs(want-rows) > 0.05 {
				t.Errorf("%s, %d columns: smoothed loss %.3f, loss %.3f", metric, columns, want, rows)
			}
		}
	}
}

// TestSmoothedLossOfVanishingScores checks that scores that vanish for nearly all rows, as a narrow kernel makes them,
// are not better by the compared loss than scores that find the right one of many classes for a third of all rows.
func TestSmoothedLossOfVanishingScores(t *testing.T) {
	const n, classes = 600, 12
	y, vanishing, right := mat.NewDense(n, classes, nil), mat.NewDense(n, classes, nil), mat.NewDense(n, classes, nil)
	g := rng.New(5)
	for i := range n {
		for k := range classes {
			y.Set(i, k, -1)
			right.Set(i, k, g.Normal(uint64(i*classes+k)))
			if vanishing.Set(i, k, 1e-9*right.At(i, k)); i < n/50 {
				vanishing.Set(i, k, right.At(i, k))
			}
		}
		class := min(i%classes, i%7) // not all classes are as frequent
		y.Set(i, class, 1)
		right.Set(i, class, right.At(i, class)+1)
	}
	for _, metric := range []model.Metric{model.ErrorRate, model.BalancedError, model.F1} {
		j, e := &judgment{metric: metric}, mat.NewDense(n, classes, nil)
		e.Sub(y, vanishing)
		a := j.loss(y, e)
		e.Sub(y, right)
		b := j.loss(y, e)
		exact, _ := meanAndError(b.rows)
		if worse, _ := meanAndError(a.smoothed); worse < 0.85 {
			t.Errorf("%s: smoothed loss %.3f of scores that vanish", metric, worse)
		}
		if v, _ := meanAndError(b.smoothed); math.Abs(v-exact) > 0.03 || a.objective() < b.objective() {
			t.Errorf("%s: smoothed loss %.3f, loss %.3f; objective %.3f, of scores that vanish %.3f", metric, v, exact,
				b.objective(), a.objective())
		}
	}
}

// judge returns the default judgment.
func judge(classes bool) *judgment {
	if classes {
		return &judgment{metric: model.ErrorRate}
	}
	return &judgment{metric: model.RMSE}
}
