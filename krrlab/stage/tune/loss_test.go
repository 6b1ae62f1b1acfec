package tune

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/model"
)

// TestCoverageOfRMSE checks that the 95 % interval of an RMSE covers the true one, 3, nearly as often as stated, even
// for few rows. For one row there is no upper bound.
func TestCoverageOfRMSE(t *testing.T) {
	const trials = 2000
	for n, minShare := range map[int]float64{3: 0.85, 5: 0.89, 20: 0.90, 100: 0.92} {
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
		if share := float64(covered) / trials; share < minShare {
			t.Errorf("%d rows: %g of the intervals cover, want %g", n, share, minShare)
		}
	}
	if v, lo, hi := (&loss{rows: []float64{4}}).Error(); v != 2 || lo != 0 || !math.IsInf(hi, 1) {
		t.Errorf("the RMSE of one row is %g in [%g, %g], want 2 in [0, +Inf]", v, lo, hi)
	}
}

// TestCoverageWithGroups checks that the interval of an error covers the true one nearly as often as stated if the rows
// of a group have the same loss, as copies of a record have: for the RMSE, and for the error of two classes, of which
// every third group has wrong labels.
func TestCoverageWithGroups(t *testing.T) {
	const trials, groups, size = 400, 40, 5
	var firstOfGroup []int // for each row, the first row of its group
	for g := range groups {
		firstOfGroup = append(firstOfGroup, slices.Repeat([]int{g * size}, size)...)
	}
	for _, metric := range []model.Metric{model.RMSE, model.ErrorRate} {
		covered, independent := 0, 0
		for seed := range uint64(trials) {
			g, y, e := rng.New(seed), mat.NewDense(groups*size, 1, nil), mat.NewDense(groups*size, 1, nil)
			want := 1.0
			for i, k := range firstOfGroup {
				y.Set(i, 0, 1)
				if e.Set(i, 0, g.Normal(uint64(k))); metric == model.ErrorRate {
					want = 1 / 3.0
					e.Set(i, 0, 2*math.Max(0, math.Copysign(1, 1/3.0-g.Float64(uint64(k)))))
				}
			}
			for _, j := range []*scoring{{metric: metric, groups: firstOfGroup}, {metric: metric}} {
				if _, lo, hi := j.loss(y, e).Error(); lo > want || want > hi {
					continue
				}
				if j.groups == nil {
					independent++
				} else {
					covered++
				}
			}
		}
		t.Logf("%s: %d of %d intervals cover, %d if the rows are taken for independent", metric, covered, trials,
			independent)
		if covered < trials*91/100 || independent > trials*8/10 {
			t.Errorf("%s: %d of %d intervals cover, %d if the rows are taken for independent", metric, covered, trials,
				independent)
		}
	}
}

// TestCoverageWithWeights checks that the interval of an error covers the true one nearly as often as stated if a few
// of the rows have most of the weight: weights e^{2.5z} with a normal z. Degrees of freedom from the number of rows
// cover 85 % for the RMSE and 76 % for the share of wrong labels.
func TestCoverageWithWeights(t *testing.T) {
	const trials, n = 400, 60
	for _, metric := range []model.Metric{model.RMSE, model.ErrorRate} {
		covered := 0
		for seed := range uint64(trials) {
			g, y, e, want := rng.New(seed), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil), 1.0
			j := &scoring{metric: metric}
			for i := range n {
				y.Set(i, 0, 1)
				if e.Set(i, 0, g.Normal(uint64(i))); metric == model.ErrorRate {
					want = 1 / 3.0
					e.Set(i, 0, 2*math.Max(0, math.Copysign(1, 1/3.0-g.Float64(uint64(i)))))
				}
				j.weights = append(j.weights, math.Exp(2.5*g.Sub("weight").Normal(uint64(i))))
			}
			if v, lo, hi := j.loss(y, e).Error(); lo <= want && want <= hi && lo <= v && v <= hi {
				covered++
			}
		}
		t.Logf("%s: %d of %d intervals cover", metric, covered, trials)
		if covered < trials*89/100 {
			t.Errorf("%s: %d of %d intervals cover, want 89 %%", metric, covered, trials)
		}
	}
}

// TestAUCError checks the standard error of 1 − AUC against that of DeLong, DeLong and Clarke-Pearson by all pairs.
func TestAUCError(t *testing.T) {
	const n, positive = 60, 13
	g, y, e := rng.New(4), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		if y.Set(i, 0, -1); i < positive {
			y.Set(i, 0, 1)
		}
		e.Set(i, 0, g.Normal(uint64(i))) // f = y−e
	}
	l := (&scoring{metric: model.AUC}).loss(y, e)
	// For each row, the share of the rows of the other class with a score on the wrong side of its own.
	var ofPositive, ofNegative []float64
	for i := range n {
		share, opposite := 0.0, 0.0
		for k := range n {
			if y.At(k, 0) != y.At(i, 0) {
				if opposite++; (y.At(i, 0)-e.At(i, 0)-y.At(k, 0)+e.At(k, 0))*y.At(i, 0) < 0 {
					share++
				}
			}
		}
		if share /= opposite; i < positive {
			ofPositive = append(ofPositive, share)
		} else {
			ofNegative = append(ofNegative, share)
		}
	}
	want := math.Sqrt(stat.PopVariance(ofPositive, nil)/positive + stat.PopVariance(ofNegative, nil)/(n-positive))
	mean, se := estimate.GroupedMean(l.rows, l.groups)
	if math.Abs(mean-stat.Mean(ofPositive, nil)) > 1e-12 || math.Abs(se-want) > 1e-12 {
		t.Errorf("1 − AUC %g ± %g, want %g ± %g", mean, se, stat.Mean(ofPositive, nil), want)
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
			j := &scoring{metric: metric, positiveClass: 1}
			smoothed := func(factor float64) float64 {
				e.Scale(-factor, f)
				e.Add(e, y)
				return stat.Mean(j.loss(y, e).smoothed, nil)
			}
			want := smoothed(1)
			for _, factor := range []float64{1e-6, 0.1, 30} {
				if got := smoothed(factor); math.Abs(got-want) > 1e-6 {
					t.Errorf("%s, %d columns: smoothed loss %.4f of scores, %.4f of %g times these", metric, columns,
						want, got, factor)
				}
			}
			if rows := stat.Mean(j.loss(y, e).rows, nil); math.Abs(want-rows) > 0.05 {
				t.Errorf("%s, %d columns: smoothed loss %.3f, loss %.3f", metric, columns, want, rows)
			}
		}
	}
}

// TestSmoothedLossOfVanishingScores checks that scores that vanish for nearly all rows, as a narrow kernel makes them,
// are not better by the smoothed loss than scores that find the right one of many classes for a third of all rows.
func TestSmoothedLossOfVanishingScores(t *testing.T) {
	const n, classes = 600, 12
	y, vanishing, informative := mat.NewDense(n, classes, nil), mat.NewDense(n, classes, nil),
		mat.NewDense(n, classes, nil)
	g := rng.New(5)
	for i := range n {
		for k := range classes {
			y.Set(i, k, -1)
			informative.Set(i, k, g.Normal(uint64(i*classes+k)))
			if vanishing.Set(i, k, 1e-9*informative.At(i, k)); i < n/50 {
				vanishing.Set(i, k, informative.At(i, k))
			}
		}
		class := min(i%classes, i%7) // not all classes are as frequent
		y.Set(i, class, 1)
		informative.Set(i, class, informative.At(i, class)+1)
	}
	for _, metric := range []model.Metric{model.ErrorRate, model.BalancedError, model.F1} {
		j, e := &scoring{metric: metric}, mat.NewDense(n, classes, nil)
		e.Sub(y, vanishing)
		a := j.loss(y, e)
		e.Sub(y, informative)
		b := j.loss(y, e)
		exact := stat.Mean(b.rows, nil)
		if worse := stat.Mean(a.smoothed, nil); worse < 0.85 {
			t.Errorf("%s: smoothed loss %.3f of scores that vanish", metric, worse)
		}
		if v := stat.Mean(b.smoothed, nil); math.Abs(v-exact) > 0.03 || a.objective() < b.objective() {
			t.Errorf("%s: smoothed loss %.3f, loss %.3f; objective %.3f, of scores that vanish %.3f", metric, v, exact,
				b.objective(), a.objective())
		}
	}
}

// defaultScoring returns the scoring with the default metric: the error rate for classes, and else the RMSE.
func defaultScoring(classes bool) *scoring {
	if classes {
		return &scoring{metric: model.ErrorRate}
	}
	return &scoring{metric: model.RMSE}
}
