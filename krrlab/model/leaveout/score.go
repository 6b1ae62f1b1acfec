package leaveout

import (
	"cmp"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// Problem says what is left out, and how Path goes about it. Zero values, and a nil *Problem, mean the defaults.
type Problem struct {
	// Classes says that Y is coded by ±1, one column for each class or one for two classes: Error is then the
	// share of labels that leave-one-out predicts wrongly. Default: the mean square.
	Classes bool
	// KError bounds ‖K_stored−K‖₂, which intervals allow for. Default 0.
	KError float64
	// Same has for each row the first of its group of equal rows, which are left out together. Default: nil, each row
	// is left out alone.
	Same []int
	// Groups is Same for rows that need not be equal, which only Dense leaves out together. At most one of the two is
	// set.
	Groups []int
	// Weights are those of the rows, by which Y and K are already multiplied (points.Weighted): errors
	// and GCV are weighted means. Default: nil, ones.
	Weights []float64
	// Scored returns the weight of a row in the share of wrong labels. Default: that of Weights.
	Scored func(row int) float64
	// Mean says that a fit takes the mean of its targets, weighted, off them: one without a row takes that of the
	// others.
	Mean bool
	// Residuals says that Score.Residuals is wanted, 8nt bytes for each λ.
	Residuals bool
	// Below, if positive, is an e for which ZZᵀ ≼ K+eI is certain, as Rounding of a lowrank.Factor that is
	// Certain. Default 0: none is known.
	Below float64
	// Probes is the number m of probes of Path, at least 4. Default 8.
	Probes int
	// Confidence of Path's intervals, in (0, 1). Default 0.95.
	Confidence float64
	// MaxIter is the most passes over K. Default 200.
	MaxIter int
	// Stream is where Path draws the probes from.
	Stream rng.Stream
	// Progress, if not nil, is called as the work proceeds.
	Progress func(done, total int)
}

// settled returns a copy of o with the defaults filled in.
func (o *Problem) settled() Problem {
	s := *cmp.Or(o, &Problem{})
	s.Probes, s.MaxIter = cmp.Or(s.Probes, 8), cmp.Or(s.MaxIter, 200)
	s.Confidence = cmp.Or(s.Confidence, estimate.DefaultConfidence)
	if s.Progress == nil {
		s.Progress = func(_, _ int) {}
	}
	return s
}

// Score is the result of leave-one-out for one λ.
type Score struct {
	Lambda float64 `json:"lambda"`
	// Error is the mean of (y_i−f_{−i}(x_i))² over points and right-hand sides, or the share of wrong labels.
	Error estimate.Interval `json:"error"`
	GCV   float64           `json:"gcv"`      // n‖C‖²_F/(t·(tr A⁻¹)²), with the mean and equal rows as Error has them
	S     float64           `json:"stat_dim"` // s_λ = n − λ·tr A⁻¹, the degrees of freedom, and one of the mean
	// Residuals are y_i − f_{−i}(x_i), n×t; nil unless Problem.Residuals.
	Residuals *mat.Dense `json:"-"`
}

// check returns an error for λ, targets or shapes that nothing can be made of.
func check(n int, y *mat.Dense, lambdas []float64) error {
	if m, _ := y.Dims(); m != n {
		panic(fmt.Sprintf("leaveout: K of order %d, %d targets", n, m))
	}
	if n < 2 {
		return fmt.Errorf("leaveout: leave-one-out of %d points: want at least 2", n)
	}
	if len(lambdas) == 0 {
		return fmt.Errorf("leaveout: no λ: want at least one value")
	}
	for _, l := range lambdas {
		if !(l >= 1e-100 && l <= 1e100) {
			return fmt.Errorf("leaveout: λ = %g: want a positive number from 1e-100 to 1e100", l)
		}
	}
	return nil
}

// wrong returns the share of the rows of Y−E that have another label than Y's, and that of those that may have one or
// the other if the entries of row i of E are in error by at most within(i). Rows count by their weights.
func (m *merged) wrong(e *mat.Dense, within func(i int) float64) (share, open float64) {
	y := m.full
	n, t := y.Dims()
	f, total := make([]float64, t), 0.0
	for i := range n {
		truth := datasets.PredictedClass(y.RawRowView(i))
		for j := range f {
			f[j] = y.At(i, j) - e.At(i, j)
		}
		if datasets.PredictedClass(f) != truth {
			share += m.scored(i)
		}
		if math.Abs(datasets.Margin(f, truth))/2 <= within(i) {
			open += m.scored(i)
		}
		total += m.scored(i)
	}
	return share / total, open / total
}
