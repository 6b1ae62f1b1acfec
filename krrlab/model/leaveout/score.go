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

// Problem describes which rows are left out together, and has the options of Path. Zero values, and a nil *Problem,
// mean the defaults.
type Problem struct {
	// Classification states that Y is coded by ±1, with one column for each class, or a single one for two classes.
	// Error is then the share of labels that leave-one-out predicts wrongly. Default: the mean square.
	Classification bool
	// KError bounds ‖K_stored−K‖₂; the intervals include its effect. Default 0.
	KError float64
	// FirstEqual contains, for each row, the first row of its group of equal rows, which are left out together. Default
	// nil: each row is left out alone.
	FirstEqual []int
	// Groups is like FirstEqual for rows that need not be equal. Only Dense supports it. At most one of the two may be
	// set.
	Groups []int
	// Weights are the weights w_i of the rows. The caller has multiplied row i of Y, and row and column i of K, by √w_i
	// (points.Weighted). Errors and GCV are weighted means. Default nil: all weights are 1.
	Weights []float64
	// ScoreWeight returns the weight of a row in the share of wrong labels. Default: its weight in Weights.
	ScoreWeight func(row int) float64
	// SubtractsMean states that a fit subtracts the weighted mean of its targets. A fit without a row subtracts the
	// mean of the other rows.
	SubtractsMean bool
	// ComputeResiduals requests Score.Residuals, which take 8nt bytes for each λ.
	ComputeResiduals bool
	// SketchExcess, if positive, is a number e for which ZZᵀ ≼ K+eI is proved, where ZZᵀ+λ_pI is the preconditioner for
	// Path. For a lowrank.Factor that is Certain, e is the factor's Rounding. Default 0: no such number is known.
	SketchExcess float64
	// Probes is the number of probes of Path, which are vectors of random signs: at least 4. Default 8.
	Probes int
	// Confidence is the confidence of Path's intervals, in (0, 1). Default 0.95.
	Confidence float64
	// MaxIter is the maximum number of passes over K. Default 200.
	MaxIter int
	// Stream is the random stream from which Path draws the probes.
	Stream rng.Stream
	// Progress, if not nil, is called as the work proceeds.
	Progress func(done, total int)
}

// withDefaults returns a copy of p, which may be nil, with the defaults filled in.
func (p *Problem) withDefaults() Problem {
	completed := *cmp.Or(p, &Problem{})
	completed.Probes, completed.MaxIter = cmp.Or(completed.Probes, 8), cmp.Or(completed.MaxIter, 200)
	completed.Confidence = cmp.Or(completed.Confidence, estimate.DefaultConfidence)
	if completed.Progress == nil {
		completed.Progress = func(_, _ int) {}
	}
	return completed
}

// Score is the result of leave-one-out for one λ.
type Score struct {
	Lambda float64 `json:"lambda"`
	// Error is the mean of (y_i−f_{−i}(x_i))² over points and right-hand sides, where f_{−i} is fitted without point i,
	// or the share of labels that f_{−i} predicts wrongly.
	Error estimate.Interval `json:"error"`
	// GCV is n‖C‖²_F/(t·(tr A⁻¹)²), with the same mean as Error. Rows that are equal by Problem.FirstEqual count as one
	// row, as in Error: GCV is then the mean square of Error in which the mean of the (Ã⁻¹)_gg of the merged problem
	// replaces each of them. Problem.Groups do not change GCV.
	GCV float64 `json:"gcv"`
	// S is s_λ = n − λ·tr A⁻¹, the degrees of freedom, plus one if the mean is subtracted.
	S float64 `json:"stat_dim"`
	// Minus2LogLikelihood is −2 ln p(Y) of a Gaussian process with covariance K and noise variance λ/w_i, for Y and K
	// before they are multiplied by the weights, summed over the right-hand sides; 0 if it is not computed. Only
	// Fourier computes it.
	Minus2LogLikelihood float64 `json:"minus_2_log_likelihood,omitempty"`
	// Residuals are y_i − f_{−i}(x_i), n×t; nil unless Problem.ComputeResiduals.
	Residuals *mat.Dense `json:"-"`
}

// check returns an error if a λ or the number of points is invalid, and panics if the shapes differ.
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
	for _, lambda := range lambdas {
		if !(lambda >= 1e-100 && lambda <= 1e100) {
			return fmt.Errorf("leaveout: λ = %g: want a positive number from 1e-100 to 1e100", lambda)
		}
	}
	return nil
}

// wrongLabels returns the share of the rows of Y−E with a label other than Y's, where E are the leave-one-out
// residuals. It also returns the share of the rows whose label is undecided if the entries of row i of E have an error
// of at most tolerance(i). Rows count by their weights.
func (m *merged) wrongLabels(e *mat.Dense, tolerance func(i int) float64) (share, undecided float64) {
	y := m.centered
	n, t := y.Dims()
	prediction, total := make([]float64, t), 0.0
	for i := range n {
		truth := datasets.PredictedClass(y.RawRowView(i))
		for j := range prediction {
			prediction[j] = y.At(i, j) - e.At(i, j)
		}
		if datasets.PredictedClass(prediction) != truth {
			share += m.scoreWeight(i)
		}
		if math.Abs(datasets.Margin(prediction, truth))/2 <= tolerance(i) {
			undecided += m.scoreWeight(i)
		}
		total += m.scoreWeight(i)
	}
	return share / total, undecided / total
}
