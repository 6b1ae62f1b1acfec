package tune

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/estimate"
)

// loss is what a criterion returns for one kernel and one λ, row by row, in an order that is the same for all.
type loss struct {
	// rows are (y_i−f(x_i))², summed over the right-hand sides, or 1 where the label is wrong and 0 where it is right.
	rows []float64
	// soft are rows, for classes with the step smoothed: what the search compares.
	soft    []float64
	classes bool
	seconds float64
}

// softness is the width of the smoothed step of soft in units of the coding ±1: it halves the noise of differences
// between points of the search, and shifts the optimum by less than that.
const softness = 0.15

// lossOf returns the loss of predictions that are off by e = y−f(x), n×t, where y is coded ±1 if classes is set: one
// column for two classes, one for each for more.
func lossOf(y, e *mat.Dense, classes bool) *loss {
	n, t := y.Dims()
	l, f := &loss{rows: make([]float64, n), classes: classes}, make([]float64, t)
	if classes {
		l.soft = make([]float64, n)
	}
	for i := range n {
		if !classes {
			for j := range t {
				l.rows[i] += e.At(i, j) * e.At(i, j)
			}
			continue
		}
		floats.SubTo(f, y.RawRowView(i), e.RawRowView(i))
		m := datasets.Margin(f, datasets.Label(y.RawRowView(i))) / 2 // of the right label, in units of the coding
		if m <= 0 {
			l.rows[i] = 1
		}
		l.soft[i] = 0.5 * math.Erfc(m/(softness*math.Sqrt2))
	}
	return l
}

// z95 is the 97.5 % point of the normal distribution.
const z95 = 1.959964

// Error returns the error and its 95 % interval over samples of rows: Wilson's of a share, and of a root mean square
// m^½ that of log m^½ by Student's law, as its errors are less skewed than those of m.
func (l *loss) Error() (v, lo, hi float64) {
	mean, se := moments(l.rows)
	n := float64(len(l.rows))
	if l.classes { // Wilson
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

// objective returns what the search makes small: half the logarithm of the mean square, or that of the share of
// wrong labels, smoothed.
func (l *loss) objective() float64 {
	if l.classes {
		mean, _ := moments(l.soft)
		return math.Log(mean + 0.25/float64(len(l.soft)))
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
