package tune

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/model"
)

// loss is what a criterion returns for one kernel and one λ, row by row, in an order that is the same for all.
type loss struct {
	// rows have as their mean the loss that the metric says: the mean square, the share of wrong labels, 1 − AUC, 1 −
	// F1, or the log loss. With weights a row is multiplied by its own over their mean. Of AUC and F1, which are no
	// means, rows are what each row contributes to first order, so that the errors of means are theirs.
	rows []float64
	// soft are rows, for classes with the step smoothed: what the search compares.
	soft    []float64
	classes bool
	metric  model.Metric
	shares  bool // rows are 0 and 1
	seconds float64
}

// softness is the width of the smoothed step of soft in units of the coding ±1, or where a threshold is chosen of the
// standard deviation of the scores: it halves the noise of differences between points of the search, and shifts the
// optimum by less than that.
const softness = 0.15

// judgment is how predictions are judged.
type judgment struct {
	metric   model.Metric
	weights  []float64 // of the rows; nil for ones
	positive int       // the class of two whose F1 counts
}

func (j *judgment) classes() bool { return j.metric != model.RMSE && j.metric != "" }

// shares returns the weights over their mean.
func (j *judgment) shares(n int) []float64 {
	v := slices.Repeat([]float64{1}, n)
	if j.weights != nil {
		floats.ScaleTo(v, float64(n)/floats.Sum(j.weights), j.weights)
	}
	return v
}

// loss returns the loss of predictions that are off by e = y−f(x), n×t, where classes are coded ±1: one column for two
// classes, one for each for more.
func (j *judgment) loss(y, e *mat.Dense) *loss {
	n, t := y.Dims()
	l := &loss{rows: make([]float64, n), classes: j.classes(), metric: j.metric, shares: j.metric == model.ErrorRate &&
		j.weights == nil}
	v := j.shares(n)
	if !l.classes {
		for i := range n {
			for k := range t {
				l.rows[i] += v[i] * e.At(i, k) * e.At(i, k)
			}
		}
		return l
	}
	s := &scores{f: mat.NewDense(n, t, nil), truth: make([]int, n), v: v, of: make([]float64, max(t, 2))}
	s.f.Sub(y, e)
	for i := range n {
		s.truth[i] = datasets.Label(y.RawRowView(i))
		s.of[s.truth[i]] += v[i]
	}
	for _, w := range s.of {
		if w > 0 {
			s.present++
		}
	}
	switch j.metric {
	case model.LogLoss:
		l.rows = s.logLoss()
		l.soft = l.rows
	case model.AUC:
		l.rows = s.auc()
		l.soft = l.rows
	case model.F1:
		l.rows, l.soft = s.f1(j.positive)
	default:
		l.rows, l.soft = s.errors(j.metric)
	}
	return l
}

// z95 is the 97.5 % point of the normal distribution.
const z95 = 1.959964

// Error returns the loss and its 95 % interval over samples of rows: Wilson's of a share of rows that count alike, that
// of log m/(1−m) for other losses m in [0, 1], and of a root mean square m^½ that of log m^½ by Student's law, as its
// errors are less skewed than those of m.
func (l *loss) Error() (v, lo, hi float64) {
	mean, se := moments(l.rows)
	n := float64(len(l.rows))
	switch {
	case l.metric == model.LogLoss:
		return mean, max(0, mean-z95*se), mean + z95*se
	case l.classes && !l.shares: // of log m/(1−m), by its derivative
		if mean <= 0 || mean >= 1 {
			return mean, max(0, mean-3/n), min(1, mean+3/n) // of n rows of which none is the other
		}
		odds, by := mean/(1-mean), math.Exp(z95*se/(mean*(1-mean)))
		return mean, odds / by / (1 + odds/by), odds * by / (1 + odds*by)
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
	r := math.Exp(estimate.Student(0.95, n-1) * se * math.Sqrt(n/(n-1)) / mean / 2) // d log √m = dm/(2m)
	return v, v / r, v * r
}

// objective returns what the search makes small: half the logarithm of the mean square, or that of the loss of classes,
// smoothed.
func (l *loss) objective() float64 {
	if l.classes {
		mean, _ := moments(l.soft)
		return math.Log(max(mean, 0) + 0.25/float64(len(l.soft)))
	}
	mean, _ := moments(l.rows)
	return 0.5 * math.Log(mean+math.SmallestNonzeroFloat64)
}

// worse returns by which part of its error l is above m, and the standard error of that, by the differences of rows.
func (l *loss) worse(m *loss) (share, se float64) {
	a, b, by := l.rows, m.rows, 0.5 // of squares
	if l.classes {
		a, b, by = l.soft, m.soft, 1
	}
	d := make([]float64, len(a))
	for i, v := range a {
		d[i] = v - b[i]
	}
	mean, se := moments(d)
	base, _ := moments(b)
	base += 0.25 / float64(len(b)) * (2*by - 1)
	if base <= 0 {
		return 0, 0
	}
	return by * mean / base, by * se / base
}

// moments returns the mean and its standard error.
func moments(v []float64) (mean, se float64) {
	mean, sd := stat.PopMeanStdDev(v, nil)
	return mean, sd / math.Sqrt(float64(len(v)))
}

// inUnits divides the columns of Y, or of residuals, of a regression with several targets by the root mean squares of
// those of the fit and √t, so that the units of targets do not count: errors are then relative, in the root mean square
// of all targets. classes have no units.
func inUnits(y, of *mat.Dense, classes bool) *mat.Dense {
	n, t := of.Dims()
	if t == 1 || classes {
		return y
	}
	unit := make([]float64, t)
	for j := range unit {
		if unit[j] = mat.Norm(of.ColView(j), 2) * math.Sqrt(float64(t)/float64(n)); unit[j] == 0 {
			unit[j] = 1
		}
	}
	y.Apply(func(_, j int, v float64) float64 { return v / unit[j] }, y)
	return y
}
