package bound

import (
	"cmp"
	"context"
	"math"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

const (
	// noiseShare is the size of a residual, relative to the noise of the data, at which the rule Predictions ends an
	// iteration. Half of it takes some 15 % more iterations. Twice of it changed test errors by up to 0.3 %.
	noiseShare = 0.03
	// expectedNoise is the noise relative to RMS(y) that a prediction of iterations assumes. Measured values are
	// between 0.07 and 0.8.
	expectedNoise = 1. / 3
	// traceShare is the largest share of the remaining iterations that the estimate of the trace may take for one
	// column; for several, up to half of them, as a product with one column is then the cheaper one. A larger share
	// costs more where the trace is near n, and finds more of the noise of models that interpolate.
	traceShare = 0.25
	// minTraceIterations is the smallest number of iterations from which the trace is estimated.
	minTraceIterations = 3
)

// Noise is the noise of the data that the rule Predictions estimated, by generalized cross-validation, for the answer
// at which it ended.
type Noise struct {
	// Relative is the estimated noise of every column relative to RMS(y_j). Up to the error of Trace, it is not above
	// the estimate for the exact solution.
	Relative []float64 `json:"relative"`
	// Deciding is the noise that the tolerance was taken from: for classes the root mean square over the columns, and
	// otherwise the least of the columns whose residual is still above τ.
	Deciding float64 `json:"deciding"`
	// Trace estimates λ·tr(A⁻¹)/n from above. If Products is 0, it is 1, which holds for every K, or follows from that
	// of the first rows (Appended).
	Trace    float64 `json:"trace"`
	Products int     `json:"products"` // products with A for the estimate of Trace
}

// Appended returns an upper bound of λ·tr(A⁻¹)/n for rows of which the share in (0, 1] belongs to the estimate n. With
// more rows, n − λ·tr(A⁻¹) = tr(KA⁻¹) does not decrease, as the eigenvalues of K interlace. It returns 0 for nil.
func (n *Noise) Appended(share float64) float64 {
	if n == nil {
		return 0
	}
	return 1 - share*(1-n.Trace)
}

// Expected returns the tolerance at which an iteration is expected to end, given τ. It is τ unless the rule is
// Predictions.
func (s Stop) Expected(tau float64) float64 {
	if s.Rule == Predictions {
		return max(tau, noiseShare*expectedNoise)
	}
	return tau
}

// Target returns the tolerance at which the iteration is expected to end.
func (w *Watch) Target() float64 { return cmp.Or(w.target, w.Stop.Expected(w.Tol)) }

// checkNoise ends the iteration if its residuals are at most the tolerance of noiseTol.
//
// The model that is solved exactly, c*, has the residuals y−Kc* = λc* on the rows of the fit, whose root mean square
// is the noise times λ·tr(A⁻¹)/n (generalized cross-validation; Golub, Heath and Wahba 1979). For an iterate c,
// ‖λc−λc*‖₂ = ‖λA⁻¹r‖₂ ≤ ‖r‖₂. A residual of at most s/(s+b)·‖λc‖₂ with b ≥ λ·tr(A⁻¹)/n is therefore at most s times
// the noise that belongs to c*, and not only to c. The estimate does not depend on threads or ranks.
func (w *Watch) checkNoise(ctx context.Context, iteration *pcg.Iteration) error {
	// The noise is not above RMS(y). A residual below τ ends the iteration anyway. After a restart the tolerance that
	// was accepted stays.
	if iteration.MaxRelRes > noiseShare || iteration.MaxRelRes <= w.Tol*w.TolShare || w.Noise != nil &&
		w.Noise.Relative != nil {
		return nil
	}
	if w.Noise == nil {
		w.Noise = &Noise{Trace: 1}
		progress := math.Log(iteration.MaxRelRes)
		remaining := float64(iteration.Index) * (math.Log(w.noiseTol(w.decidingNoise(iteration))) - progress) / progress
		share := min(0.5, traceShare*float64(len(iteration.RelRes)))
		if k := int(share * remaining); k >= minTraceIterations {
			var err error
			if w.Noise.Trace, w.Noise.Products, err = w.Trace(ctx, k); err != nil {
				return err
			}
		}
	}
	deciding := w.decidingNoise(iteration)
	w.target = w.noiseTol(deciding)
	if w.target > w.Tol && iteration.Accept(w.target*w.TolShare) {
		w.Noise.Deciding, w.Tol = deciding, w.target
		for j, y := range w.Basis.Norms {
			w.Noise.Relative = append(w.Noise.Relative, 0)
			if y > 0 {
				w.Noise.Relative[j] = w.noiseOf(iteration, j)
			}
		}
	}
	return nil
}

// decidingNoise returns the noise from which the tolerance is taken: for classes, whose columns decide together, their
// root mean square, and otherwise the smallest of the columns whose residual is above τ; at most 1.
func (w *Watch) decidingNoise(iteration *pcg.Iteration) float64 {
	smallest, squares, columns := 1., 0., 0.
	for j, rel := range iteration.RelRes {
		if w.Basis.Norms[j] == 0 {
			continue
		}
		v := w.noiseOf(iteration, j)
		squares, columns = squares+v*v, columns+1
		if rel > w.Tol {
			smallest = min(smallest, v)
		}
	}
	if w.Classes {
		return min(1, math.Sqrt(squares/columns))
	}
	return smallest
}

// noiseTol returns noiseShare of the noise, rounded down to two digits, but at least τ.
func (w *Watch) noiseTol(noise float64) float64 {
	tol := noiseShare * noise
	digit := math.Pow(10, math.Floor(math.Log10(tol))-1)
	return max(math.Floor(tol/digit)*digit, w.Tol)
}

// noiseOf returns an estimate of the noise of column j relative to ‖y_j‖₂.
func (w *Watch) noiseOf(iteration *pcg.Iteration, j int) float64 {
	return w.Basis.Lambda * iteration.XNorm[j] / w.Basis.Norms[j] / (noiseShare + w.Noise.Trace)
}

// TraceEstimate estimates λ·tr(A⁻¹)/n, A = K+λI, from conjugate gradients for a vector z of n random signs, whose mean
// of λzᵀA⁻¹z is λ·tr(A⁻¹). decrease has the decreases of ‖e‖_A²/‖z‖₂² of its iterations, and residual the last residual
// relative to ‖z‖₂.
//
// The sum of the decreases approaches zᵀA⁻¹z/n from below, with an error of at most residual²/λ. It is S after all
// iterations, of which the second half has the share g. If both halves belonged to a geometric series, S·g²/(1−2g) were
// missing. The estimate adds S·g/(1−2g), but no more than the bound, and three standard deviations of the random signs,
// whose variance is at most 2b(1−b)/n for the trace b.
func TraceEstimate(decrease []float64, residual, lambda float64, n int) float64 {
	var sum, half float64
	for k, v := range decrease {
		if sum += lambda * v; k < (len(decrease)+1)/2 {
			half = sum
		}
	}
	missing := residual * residual
	if 2*half > sum {
		missing = min(missing, sum*(sum-half)/(2*half-sum))
	}
	b := min(1, sum+missing)
	return min(1, b+3*math.Sqrt(2*b*(1-b)/float64(n)))
}
