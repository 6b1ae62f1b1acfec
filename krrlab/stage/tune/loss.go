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
	// rows has one value per row, whose mean is the loss of the metric: the mean square, the share of wrong labels, 1 −
	// AUC, 1 − F1, or the log loss. With weights, each value is multiplied by the weight of its row over the mean
	// weight. AUC and F1 are not means of row losses; for them a value is the first-order contribution of a row, so
	// that the standard error of the mean is that of the loss.
	rows []float64
	// smoothed is rows with a smoothed step, for classification only. The search compares points by it.
	smoothed []float64
	groups   []int // first row of the group of each row; nil: the rows are independent
	// effectiveRows is the number W²/Σ_g W_g² of independent rows of equal weight that would have the same variance,
	// where W_g is the weight of a group, or of a row without one, and W the sum of all. 0 stands for the number of
	// rows.
	effectiveRows float64
	classes       bool // classification
	metric        model.Metric
	isShare       bool    // all rows are independent, and 0 or 1
	seconds       float64 // time of the evaluation
}

// softness is the width of the smoothed step of loss.smoothed, in units of the root mean square of the margins, or of
// the standard deviation of the scores if the metric chooses a threshold. A larger width reduces the noise of
// differences between points, and shifts the optimum. At this value the noise is halved, and the shift is smaller than
// that. In these units a factor of all scores changes nothing, as it changes no label.
const softness = 0.15

// scoring describes how predictions are judged.
type scoring struct {
	metric        model.Metric
	weights       []float64 // weights of the judged rows; nil: all ones
	groups        []int     // first row of the group of each judged row; nil: each row is its own group
	positiveClass int       // class whose F1 is optimized, if there are two
}

// onRows returns j with the weights and groups of d, whose rows are judged.
func (j scoring) onRows(d *datasets.Dataset) scoring {
	j.weights, j.groups = d.Weights, d.Grouping(nil).FirstRow
	return j
}

// classes reports whether the judged rows have classes.
func (j *scoring) classes() bool { return j.metric != model.RMSE && j.metric != "" }

// relativeWeights returns the weights of the n rows over their mean.
func (j *scoring) relativeWeights(n int) []float64 {
	v := slices.Repeat([]float64{1}, n)
	if j.weights != nil {
		floats.ScaleTo(v, float64(n)/floats.Sum(j.weights), j.weights)
	}
	return v
}

// loss returns the loss of predictions with the residuals e = y−f(x), n×t. Classes are coded ±1, in one column for two
// classes, or one column per class for more.
func (j *scoring) loss(y, e *mat.Dense) *loss {
	n, t := y.Dims()
	l := &loss{rows: make([]float64, n), classes: j.classes(), metric: j.metric}
	if points.CountRepeated(j.groups) > 0 {
		l.groups = j.groups
	}
	l.isShare = j.metric == model.ErrorRate && j.weights == nil && l.groups == nil
	weights, sums := j.relativeWeights(n), make([]float64, n)
	for i, w := range weights {
		if l.groups != nil {
			i = l.groups[i]
		}
		sums[i] += w
	}
	l.effectiveRows = float64(n*n) / floats.Dot(sums, sums)
	if !l.classes {
		for i := range n {
			for k := range t {
				l.rows[i] += weights[i] * e.At(i, k) * e.At(i, k)
			}
		}
		return l
	}
	s := &scores{f: mat.NewDense(n, t, nil), truth: make([]int, n), weights: weights,
		classWeights: make([]float64, max(t, 2))}
	s.f.Sub(y, e)
	for i := range n {
		s.truth[i] = datasets.PredictedClass(y.RawRowView(i))
		s.classWeights[s.truth[i]] += weights[i]
	}
	for _, w := range s.classWeights {
		if w > 0 {
			s.presentClasses++
		}
	}
	switch j.metric {
	case model.LogLoss:
		l.rows = s.logLoss()
	case model.AUC:
		l.rows = s.auc()
	case model.F1:
		l.rows, l.smoothed = s.f1(j.positiveClass)
	case model.ErrorRate, model.BalancedError:
		l.rows, l.smoothed = s.errorLosses(j.metric)
	default:
		panic(fmt.Sprintf("tune: the metric %s has no row losses", j.metric))
	}
	if l.smoothed == nil { // the metric has no step
		l.smoothed = l.rows
	}
	return l
}

// z95 is the 97.5 % point of the normal distribution.
const z95 = 1.959964

// Error returns the loss and its 95 % interval over samples of rows, or of groups of rows. The interval is
//   - Wilson's for a share of unweighted rows without groups,
//   - Student's on the scale of log m/(1−m) for other losses m in [0, 1],
//   - Student's and cut at 0 for the log loss, and
//   - Student's on the scale of log m^½ for a root mean square m^½, because log m^½ is less skewed than m.
//
// The degrees of freedom are effectiveRows−1, so that few rows of large weight count as few rows.
func (l *loss) Error() (v, lo, hi float64) {
	mean, se := estimate.GroupedMean(l.rows, l.groups)
	n := cmp.Or(l.effectiveRows, float64(len(l.rows)))
	freedom := max(n-1, 1)
	t := estimate.StudentHalfWidth(0.95, freedom) * math.Sqrt(n/freedom) * se
	switch {
	case l.metric == model.LogLoss:
		return mean, max(0, mean-t), mean + t
	case l.classes && !l.isShare: // log m/(1−m), by its derivative
		if mean <= 0 || mean >= 1 {
			return mean, max(0, mean-3/n), min(1, mean+3/n) // rule of three: an event that occurs in none of n rows
		}
		odds, factor := mean/(1-mean), math.Exp(t/(mean*(1-mean)))
		return mean, odds / factor / (1 + odds/factor), odds / (odds + 1/factor)
	case l.classes: // Wilson
		z := z95 * z95 / n
		mid, half := (mean+z/2)/(1+z), z95*math.Sqrt(mean*(1-mean)/n+z/(4*n))/(1+z)
		return mean, max(0, mid-half), min(1, mid+half)
	}
	v = math.Sqrt(mean)
	switch {
	case n < 2:
		return v, 0, math.Inf(1)
	case mean == 0:
		return 0, 0, 0
	}
	r := math.Exp(t / mean / 2) // d log √m = dm/(2m)
	return v, v / r, v * r
}

// compared returns the losses of the rows by which the search compares points. An error is the given power of their
// mean plus the offset. For classes the offset is a quarter of a wrong label (a judgment), so that the logarithm of an
// error of 0 is finite.
func (l *loss) compared() (rows []float64, power, offset float64) {
	if l.classes {
		return l.smoothed, 1, 0.25 / float64(len(l.smoothed))
	}
	return l.rows, 0.5, 0 // the square root of a mean square
}

// objective returns the quantity that the search minimizes: the logarithm of the compared error.
func (l *loss) objective() float64 {
	rows, power, offset := l.compared()
	return power * math.Log(max(stat.Mean(rows, nil), 0)+offset+math.SmallestNonzeroFloat64)
}

// relativeExcess returns the excess of l's error over that of reference, relative to the latter, and its standard
// error, which is computed from the differences of rows. For squared losses it is the first-order excess of the root
// mean square. Both are 0 if the error of reference is 0.
func (l *loss) relativeExcess(reference *loss) (excess, se float64) {
	rows, power, offset := l.compared()
	baseRows, _, _ := reference.compared()
	mean, se := estimate.GroupedMean(floats.SubTo(make([]float64, len(rows)), rows, baseRows), l.groups)
	base := stat.Mean(baseRows, nil) + offset
	if base <= 0 {
		return 0, 0
	}
	return power * mean / base, power * se / base
}

// inTargetUnits divides column j of y, which may be residuals, by √t times the root mean square of column j of trainY,
// so that the units of several targets do not matter. Errors are then relative to the root mean square of all targets.
// It changes y, and returns it. A single target and classes are unchanged.
func (j *scoring) inTargetUnits(y, trainY *mat.Dense) *mat.Dense {
	n, t := trainY.Dims()
	if t == 1 || j.classes() {
		return y
	}
	unit := make([]float64, t)
	for col := range unit {
		if unit[col] = mat.Norm(trainY.ColView(col), 2) * math.Sqrt(float64(t)/float64(n)); unit[col] == 0 {
			unit[col] = 1
		}
	}
	y.Apply(func(_, col int, v float64) float64 { return v / unit[col] }, y)
	return y
}
