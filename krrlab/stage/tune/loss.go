package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/model"
)

// loss is the loss of each row for one kernel and one λ. All losses of a level have the same rows in the same order.
type loss struct {
	// rowLosses has one value per row. The mean of these values is the loss of the metric: the mean square, the share
	// of wrong labels, 1 − AUC, 1 − F1, or the log loss. With weights, each value is multiplied by the weight of its
	// row over the mean weight. AUC and F1 are not means of row losses; for them a value is the first-order
	// contribution of a row, so that the standard error of the mean is the standard error of the loss.
	rowLosses []float64
	// smoothed has the same row losses with a smooth step in place of the jump at the threshold of a classifier, for
	// classification only. The search compares points by these losses, as they have less noise.
	smoothed []float64
	groups   []int // first row of the group of each row; nil: the rows are independent
	// effectiveRows is the number W²/Σ_g W_g² of independent rows of equal weight that would have the same variance,
	// where W_g is the weight of a group, or of a row without one, and W the sum of all. 0 stands for the number of
	// rows.
	effectiveRows float64
	hasClasses    bool // whether the targets are classes
	metric        model.Metric
	isShare       bool    // whether the loss is a share: the rows are independent, and each value is 0 or 1
	seconds       float64 // time of the evaluation
}

// softness is the width of the smoothed step of loss.smoothed, in units of the root mean square of the margins, or of
// the standard deviation of the scores if the metric chooses a threshold. A larger width reduces the noise of
// differences between points of the search, and shifts the optimum. At this value the noise is halved, and the shift is
// smaller than the remaining noise. With these units, multiplying all scores by a factor does not change the loss.
const softness = 0.15

// scoring describes how predictions are judged.
type scoring struct {
	metric        model.Metric
	weights       []float64 // weights of the judged rows; nil: all ones
	groups        []int     // first row of the group of each judged row; nil: each row is its own group
	positiveClass int       // class whose F1 is optimized, if there are two
}

// onRows returns s with the weights and groups of the judged rows.
func (s scoring) onRows(judged *datasets.Dataset) scoring {
	s.weights, s.groups = judged.Weights, judged.Grouping(nil).FirstRow
	return s
}

// hasClasses reports whether the judged rows have classes.
func (s *scoring) hasClasses() bool { return s.metric != model.RMSE && s.metric != "" }

// relativeWeights returns the weights of the n rows over their mean.
func (s *scoring) relativeWeights(n int) []float64 {
	weights := slices.Repeat([]float64{1}, n)
	if s.weights != nil {
		floats.ScaleTo(weights, float64(n)/floats.Sum(s.weights), s.weights)
	}
	return weights
}

// loss returns the loss of predictions f with the residuals y−f, n×t. Classes are coded ±1 in y, in one column for two
// classes, or one column per class for more.
func (s *scoring) loss(y, residuals *mat.Dense) *loss {
	n, t := y.Dims()
	l := &loss{rowLosses: make([]float64, n), hasClasses: s.hasClasses(), metric: s.metric}
	if points.CountRepeated(s.groups) > 0 {
		l.groups = s.groups
	}
	l.isShare = s.metric == model.ErrorRate && s.weights == nil && l.groups == nil
	weights, sums := s.relativeWeights(n), make([]float64, n)
	for i, weight := range weights {
		if l.groups != nil {
			i = l.groups[i]
		}
		sums[i] += weight
	}
	l.effectiveRows = float64(n*n) / floats.Dot(sums, sums) // the relative weights have the sum n
	if !l.hasClasses {
		for i := range n {
			for k := range t {
				l.rowLosses[i] += weights[i] * residuals.At(i, k) * residuals.At(i, k)
			}
		}
		return l
	}
	scores := &scores{f: mat.NewDense(n, t, nil), truth: make([]int, n), weights: weights,
		classWeights: make([]float64, max(t, 2))}
	scores.f.Sub(y, residuals)
	for i := range n {
		scores.truth[i] = datasets.PredictedClass(y.RawRowView(i))
		scores.classWeights[scores.truth[i]] += weights[i]
	}
	for _, weight := range scores.classWeights {
		if weight > 0 {
			scores.presentClasses++
		}
	}
	switch s.metric {
	case model.LogLoss:
		l.rowLosses = scores.logLoss()
	case model.AUC:
		l.rowLosses = scores.auc()
	case model.F1:
		l.rowLosses, l.smoothed = scores.f1(s.positiveClass)
	case model.ErrorRate, model.BalancedError:
		l.rowLosses, l.smoothed = scores.errorLosses(s.metric)
	default:
		panic(fmt.Sprintf("tune: the metric %s has no row losses", s.metric))
	}
	if l.smoothed == nil { // the metric has no step
		l.smoothed = l.rowLosses
	}
	return l
}

// z95 is the 97.5 % quantile of the standard normal distribution.
const z95 = 1.959964

// errorInterval returns the error and its 95 % interval over samples of rows, or of groups of rows: the mean of the row
// losses, or its square root m^½ for a mean square m. The interval is
//   - Wilson's for a share of unweighted rows without groups,
//   - Student's on the scale of log m/(1−m) for other losses m in [0, 1],
//   - Student's and cut at 0 for the log loss, and
//   - Student's on the scale of log m^½ for a root mean square m^½, because log m^½ is less skewed than m.
//
// The degrees of freedom are effectiveRows−1, so that few rows of large weight count as few rows.
func (l *loss) errorInterval() (value, lo, hi float64) {
	mean, se := estimate.GroupedMean(l.rowLosses, l.groups)
	n := cmp.Or(l.effectiveRows, float64(len(l.rowLosses)))
	degreesOfFreedom := max(n-1, 1)
	halfWidth := estimate.StudentHalfWidth(0.95, degreesOfFreedom) * math.Sqrt(n/degreesOfFreedom) * se
	switch {
	case l.metric == model.LogLoss:
		return mean, max(0, mean-halfWidth), mean + halfWidth
	case l.hasClasses && !l.isShare: // The interval of log m/(1−m) has the half-width of m divided by m(1−m).
		if mean <= 0 || mean >= 1 {
			return mean, max(0, mean-3/n), min(1, mean+3/n) // the rule of three, for an event seen in none of n rows
		}
		odds, oddsFactor := mean/(1-mean), math.Exp(halfWidth/(mean*(1-mean)))
		return mean, odds / oddsFactor / (1 + odds/oddsFactor), odds / (odds + 1/oddsFactor)
	case l.hasClasses: // Wilson's interval
		z := z95 * z95 / n
		middle, halfLength := (mean+z/2)/(1+z), z95*math.Sqrt(mean*(1-mean)/n+z/(4*n))/(1+z)
		return mean, max(0, middle-halfLength), min(1, middle+halfLength)
	}
	value = math.Sqrt(mean)
	switch {
	case n < 2:
		return value, 0, math.Inf(1)
	case mean == 0:
		return 0, 0, 0
	}
	factor := math.Exp(halfWidth / mean / 2) // d log √m = dm/(2m)
	return value, value / factor, value * factor
}

// comparedLosses returns the losses of the rows by which the search compares points. The compared error is
// (mean of rowLosses + offset)^power. For classes the offset is a quarter of a wrong label, chosen by judgment, so that
// the logarithm of an error of 0 is finite.
func (l *loss) comparedLosses() (rowLosses []float64, power, offset float64) {
	if l.hasClasses {
		return l.smoothed, 1, 0.25 / float64(len(l.smoothed))
	}
	return l.rowLosses, 0.5, 0 // the square root of a mean square
}

// objective returns the quantity that the search minimizes: the logarithm of the compared error.
func (l *loss) objective() float64 {
	rowLosses, power, offset := l.comparedLosses()
	return power * math.Log(max(stat.Mean(rowLosses, nil), 0)+offset+math.SmallestNonzeroFloat64)
}

// relativeExcess returns by which fraction the compared error of l exceeds that of reference, and the standard error of
// this fraction, which is computed from the differences of row losses. For squared losses it is the excess of the root
// mean square, to first order. Both results are 0 if the error of reference is 0.
func (l *loss) relativeExcess(reference *loss) (excess, se float64) {
	rowLosses, power, offset := l.comparedLosses()
	baseLosses, _, _ := reference.comparedLosses()
	mean, se := estimate.GroupedMean(floats.SubTo(make([]float64, len(rowLosses)), rowLosses, baseLosses), l.groups)
	base := stat.Mean(baseLosses, nil) + offset
	if base <= 0 {
		return 0, 0
	}
	return power * mean / base, power * se / base
}

// inTargetUnits divides each of the t columns of y, which may be residuals, by √t times the root mean square of the
// same column of trainY, so that the units of several targets do not matter. Errors are then relative to the root mean
// square of all targets. It changes y, and returns y. A single target and classes are unchanged.
func (s *scoring) inTargetUnits(y, trainY *mat.Dense) *mat.Dense {
	n, t := trainY.Dims()
	if t == 1 || s.hasClasses() {
		return y
	}
	units := make([]float64, t)
	for column := range units {
		if units[column] = mat.Norm(trainY.ColView(column), 2) * math.Sqrt(float64(t)/float64(n)); units[column] == 0 {
			units[column] = 1
		}
	}
	y.Apply(func(_, column int, v float64) float64 { return v / units[column] }, y)
	return y
}
