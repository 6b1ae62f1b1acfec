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

// TestCoverageOfRMSE checks that the 95 % interval of an RMSE covers the true RMSE, 3, nearly as often as stated, even
// for few rows. For one row there is no upper bound.
func TestCoverageOfRMSE(t *testing.T) {
	const trials = 2000
	for n, minShare := range map[int]float64{3: 0.85, 5: 0.89, 20: 0.90, 100: 0.92} {
		covered := 0
		for seed := range trials {
			l := &loss{rowLosses: make([]float64, n)}
			stream := rng.New(uint64(seed))
			for i := range l.rowLosses {
				residual := 3 * stream.Normal(uint64(i))
				l.rowLosses[i] = residual * residual
			}
			if value, lo, hi := l.errorInterval(); lo <= 3 && 3 <= hi && lo <= value && value <= hi {
				covered++
			}
		}
		if coveredShare := float64(covered) / trials; coveredShare < minShare {
			t.Errorf("%d rows: %g of the intervals cover, want %g", n, coveredShare, minShare)
		}
	}
	if value, lo, hi := (&loss{rowLosses: []float64{4}}).errorInterval(); value != 2 || lo != 0 || !math.IsInf(hi, 1) {
		t.Errorf("the RMSE of one row is %g in [%g, %g], want 2 in [0, +Inf]", value, lo, hi)
	}
}

// TestCoverageWithGroups checks that the interval of an error covers the true error nearly as often as stated if the
// rows of a group have the same loss, as copies of a record have: for the RMSE of standard normal residuals, and for an
// error rate of 1/3.
func TestCoverageWithGroups(t *testing.T) {
	const trials, groupCount, groupSize = 400, 40, 5
	var firstOfGroup []int // for each row, the first row of its group
	for group := range groupCount {
		firstOfGroup = append(firstOfGroup, slices.Repeat([]int{group * groupSize}, groupSize)...)
	}
	for _, metric := range []model.Metric{model.RMSE, model.ErrorRate} {
		covered, coveredUngrouped := 0, 0
		for seed := range uint64(trials) {
			const n = groupCount * groupSize
			stream, y, residuals := rng.New(seed), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
			want := 1.0
			for i, first := range firstOfGroup {
				y.Set(i, 0, 1)
				if residuals.Set(i, 0, stream.Normal(uint64(first))); metric == model.ErrorRate {
					want = 1 / 3.0
					residuals.Set(i, 0, 2*math.Max(0, math.Copysign(1, 1/3.0-stream.Float64(uint64(first)))))
				}
			}
			for _, judgment := range []*scoring{{metric: metric, groups: firstOfGroup}, {metric: metric}} {
				if _, lo, hi := judgment.loss(y, residuals).errorInterval(); lo > want || want > hi {
					continue
				}
				if judgment.groups == nil {
					coveredUngrouped++
				} else {
					covered++
				}
			}
		}
		t.Logf("%s: %d of %d intervals cover, %d if the rows are taken for independent", metric, covered, trials,
			coveredUngrouped)
		if covered < trials*91/100 || coveredUngrouped > trials*8/10 {
			t.Errorf("%s: %d of %d intervals cover, %d if the rows are taken for independent", metric, covered, trials,
				coveredUngrouped)
		}
	}
}

// TestCoverageWithWeights checks that the interval of an error covers the true error nearly as often as stated if a few
// of the rows have most of the weight: weights e^{2.5z} with a normal z. Intervals with degrees of freedom from the
// number of rows would cover in 85 % of trials for the RMSE and in 76 % for the share of wrong labels.
func TestCoverageWithWeights(t *testing.T) {
	const trials, n = 400, 60
	for _, metric := range []model.Metric{model.RMSE, model.ErrorRate} {
		covered := 0
		for seed := range uint64(trials) {
			stream, y, residuals, want := rng.New(seed), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil), 1.0
			judgment := &scoring{metric: metric}
			for i := range n {
				y.Set(i, 0, 1)
				if residuals.Set(i, 0, stream.Normal(uint64(i))); metric == model.ErrorRate {
					want = 1 / 3.0
					residuals.Set(i, 0, 2*math.Max(0, math.Copysign(1, 1/3.0-stream.Float64(uint64(i)))))
				}
				judgment.weights = append(judgment.weights, math.Exp(2.5*stream.Sub("weight").Normal(uint64(i))))
			}
			if value, lo, hi := judgment.loss(y, residuals).errorInterval(); lo <= want && want <= hi &&
				lo <= value && value <= hi {
				covered++
			}
		}
		t.Logf("%s: %d of %d intervals cover", metric, covered, trials)
		if covered < trials*89/100 {
			t.Errorf("%s: %d of %d intervals cover, want 89 %%", metric, covered, trials)
		}
	}
}

// TestStandardErrorOfAUC compares the standard error of 1 − AUC with the formula of DeLong, DeLong and Clarke-Pearson,
// evaluated over all pairs of rows.
func TestStandardErrorOfAUC(t *testing.T) {
	const n, positiveCount = 60, 13
	stream, y, residuals := rng.New(4), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		if y.Set(i, 0, -1); i < positiveCount {
			y.Set(i, 0, 1)
		}
		residuals.Set(i, 0, stream.Normal(uint64(i))) // the score is y minus the residual
	}
	l := (&scoring{metric: model.AUC}).loss(y, residuals)
	// For each row i, the share of the rows of the other class whose score is on the wrong side of the score of row i.
	var positiveShares, negativeShares []float64
	for i := range n {
		share, opposite := 0.0, 0.0
		for k := range n {
			if y.At(k, 0) != y.At(i, 0) {
				if opposite++; (y.At(i, 0)-residuals.At(i, 0)-y.At(k, 0)+residuals.At(k, 0))*y.At(i, 0) < 0 {
					share++
				}
			}
		}
		if share /= opposite; i < positiveCount {
			positiveShares = append(positiveShares, share)
		} else {
			negativeShares = append(negativeShares, share)
		}
	}
	want := math.Sqrt(stat.PopVariance(positiveShares, nil)/positiveCount +
		stat.PopVariance(negativeShares, nil)/(n-positiveCount))
	mean, se := estimate.GroupedMean(l.rowLosses, l.groups)
	if math.Abs(mean-stat.Mean(positiveShares, nil)) > 1e-12 || math.Abs(se-want) > 1e-12 {
		t.Errorf("1 − AUC %g ± %g, want %g ± %g", mean, se, stat.Mean(positiveShares, nil), want)
	}
}

// TestSmoothedLossIgnoresScale checks that multiplying all scores by a factor, which changes no label, does not change
// the loss by which the search compares points. Random scores of four classes give the wrong label to three of four
// rows, and multiplying the scores by 1e-6 must not lower this loss.
func TestSmoothedLossIgnoresScale(t *testing.T) {
	const n = 400
	for _, metric := range []model.Metric{model.ErrorRate, model.BalancedError, model.F1} {
		for _, columns := range []int{1, 4} {
			y, scores := mat.NewDense(n, columns, nil), mat.NewDense(n, columns, nil)
			residuals := mat.NewDense(n, columns, nil)
			stream := rng.New(3)
			for i := range n {
				for j := range columns {
					y.Set(i, j, -1)
					scores.Set(i, j, stream.Normal(uint64(i*columns+j)))
				}
				if class := i % max(columns, 2); columns > 1 {
					y.Set(i, class, 1)
				} else {
					y.Set(i, 0, float64(2*class-1))
				}
			}
			judgment := &scoring{metric: metric, positiveClass: 1}
			smoothedLoss := func(factor float64) float64 {
				residuals.Scale(-factor, scores)
				residuals.Add(residuals, y)
				return stat.Mean(judgment.loss(y, residuals).smoothed, nil)
			}
			want := smoothedLoss(1)
			for _, factor := range []float64{1e-6, 0.1, 30} {
				if got := smoothedLoss(factor); math.Abs(got-want) > 1e-6 {
					t.Errorf("%s, %d columns: smoothed loss %.4f of scores, %.4f of %g times these", metric, columns,
						want, got, factor)
				}
			}
			if exactLoss := stat.Mean(judgment.loss(y, residuals).rowLosses, nil); math.Abs(want-exactLoss) > 0.05 {
				t.Errorf("%s, %d columns: smoothed loss %.3f, loss %.3f", metric, columns, want, exactLoss)
			}
		}
	}
}

// TestSmoothedLossOfVanishingScores checks that scores that are nearly zero for most rows, as with a narrow kernel, do
// not have a smaller smoothed loss than scores that find the right one of many classes for a third of all rows.
func TestSmoothedLossOfVanishingScores(t *testing.T) {
	const n, classes = 600, 12
	y, vanishing, informative := mat.NewDense(n, classes, nil), mat.NewDense(n, classes, nil),
		mat.NewDense(n, classes, nil)
	stream := rng.New(5)
	for i := range n {
		for column := range classes {
			y.Set(i, column, -1)
			informative.Set(i, column, stream.Normal(uint64(i*classes+column)))
			if vanishing.Set(i, column, 1e-9*informative.At(i, column)); i < n/50 {
				vanishing.Set(i, column, informative.At(i, column))
			}
		}
		class := min(i%classes, i%7) // not all classes are as frequent
		y.Set(i, class, 1)
		informative.Set(i, class, informative.At(i, class)+1)
	}
	for _, metric := range []model.Metric{model.ErrorRate, model.BalancedError, model.F1} {
		judgment, residuals := &scoring{metric: metric}, mat.NewDense(n, classes, nil)
		residuals.Sub(y, vanishing)
		vanishingLoss := judgment.loss(y, residuals)
		residuals.Sub(y, informative)
		informativeLoss := judgment.loss(y, residuals)
		exact := stat.Mean(informativeLoss.rowLosses, nil)
		if worse := stat.Mean(vanishingLoss.smoothed, nil); worse < 0.85 {
			t.Errorf("%s: smoothed loss %.3f of scores that vanish", metric, worse)
		}
		if smoothedLoss := stat.Mean(informativeLoss.smoothed, nil); math.Abs(smoothedLoss-exact) > 0.03 ||
			vanishingLoss.objective() < informativeLoss.objective() {
			t.Errorf("%s: smoothed loss %.3f, loss %.3f; objective %.3f, of scores that vanish %.3f", metric,
				smoothedLoss, exact, informativeLoss.objective(), vanishingLoss.objective())
		}
	}
}

// defaultScoring returns the scoring with the default metric: the error rate for classes, and else the RMSE.
func defaultScoring(hasClasses bool) *scoring {
	if hasClasses {
		return &scoring{metric: model.ErrorRate}
	}
	return &scoring{metric: model.RMSE}
}
