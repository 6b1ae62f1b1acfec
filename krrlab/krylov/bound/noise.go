package bound

import (
	"cmp"
	"context"
	"math"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

const (
	// noiseShare is the size of a residual, relative to the noise of the data, at which the rule ByPredictions ends an
	// iteration. With half of this value there are some 15 % more iterations; with twice this value test errors changed
	// by up to 0.3 %.
	noiseShare = 0.03
	// expectedNoise is the noise relative to RMS(y) that a prediction of iterations assumes. Measured values are
	// between 0.07 and 0.8.
	expectedNoise = 1. / 3
	// traceShare limits the iterations for the estimate of the trace, as a share of the remaining iterations for each
	// column, up to half of them. They are iterations with one column, which cost less than those with several. A
	// larger share costs more if the trace is near n, and improves the estimated noise of models that interpolate.
	traceShare = 0.25
	// minTraceIterations is the smallest number of iterations from which the trace is estimated.
	minTraceIterations = 3
)

// Noise is the noise of the data that the rule ByPredictions estimated, by generalized cross-validation, for the answer
// at which the iteration ended.
type Noise struct {
	// Relative is the estimated noise of every column relative to RMS(y_j). Up to the error of Trace, it is not above
	// the estimate for the exact solution.
	Relative []float64 `json:"relative"`
	// Deciding is the noise that determined the tolerance: for classes the root mean square over the columns, and
	// otherwise the smallest of the columns whose residual was still above τ.
	Deciding float64 `json:"deciding"`
	// Trace is an upper estimate of λ·tr(A⁻¹)/n. If Products is 0, Trace is 1, a bound for every K, or follows from the
	// Trace of the first rows (TraceAfterAppend).
	Trace    float64 `json:"trace"`
	Products int     `json:"products"` // products with A for the estimate of Trace
}

// TraceAfterAppend returns an upper bound of λ·tr(A⁻¹)/n after rows were appended to those of the estimate n, which are
// now the given fraction, in (0, 1], of all rows. When rows are added, n − λ·tr(A⁻¹) = tr(KA⁻¹) does not decrease,
// because the eigenvalues of K interlace. It returns 0 for nil.
func (n *Noise) TraceAfterAppend(fraction float64) float64 {
	if n == nil {
		return 0
	}
	return 1 - fraction*(1-n.Trace)
}

// ExpectedTol returns the tolerance at which an iteration is expected to end, given τ. It is τ unless the rule is
// ByPredictions.
func (s Stop) ExpectedTol(tau float64) float64 {
	if s.Rule == ByPredictions {
		return max(tau, noiseShare*expectedNoise)
	}
	return tau
}

// ExpectedTol returns the tolerance at which the iteration is expected to end.
func (m *Monitor) ExpectedTol() float64 { return cmp.Or(m.estimatedTol, m.Stop.ExpectedTol(m.Tol)) }

// checkNoise ends the iteration if its residuals are at most the tolerance of noiseTol.
//
// The exact solution c* has the residuals y−Kc* = λc* on the rows of the fit. Their root mean square is the noise times
// λ·tr(A⁻¹)/n (generalized cross-validation; Golub, Heath and Wahba 1979). For an iterate c with the residual r of the
// linear system, ‖λc−λc*‖₂ = ‖λA⁻¹r‖₂ ≤ ‖r‖₂. If ‖r‖₂ ≤ s/(s+b)·‖λc‖₂ with s = noiseShare and b ≥ λ·tr(A⁻¹)/n, this
// difference is therefore at most s times the noise that c* yields, and not only s times the noise that c yields. The
// estimate does not depend on threads or ranks.
func (m *Monitor) checkNoise(ctx context.Context, iteration *pcg.Iteration) error {
	// The noise is at most RMS(y), so a larger residual is certainly too large. A residual below τ ends the iteration
	// anyway. After a restart, the accepted tolerance stays.
	accepted := m.Noise != nil && m.Noise.Relative != nil
	if iteration.MaxRelRes > noiseShare || iteration.MaxRelRes <= m.Tol*m.TolFraction || accepted {
		return nil
	}
	if m.Noise == nil {
		m.Noise = &Noise{Trace: 1}
		progress := math.Log(iteration.MaxRelRes)
		remaining := float64(iteration.Index) * (math.Log(m.noiseTol(m.decidingNoise(iteration))) - progress) / progress
		share := min(0.5, traceShare*float64(len(iteration.RelRes)))
		if iterations := int(share * remaining); iterations >= minTraceIterations {
			var err error
			if m.Noise.Trace, m.Noise.Products, err = m.Trace(ctx, iterations); err != nil {
				return err
			}
		}
	}
	deciding := m.decidingNoise(iteration)
	m.estimatedTol = m.noiseTol(deciding)
	if m.estimatedTol > m.Tol && iteration.Accept(m.estimatedTol*m.TolFraction) {
		m.Noise.Deciding, m.Tol = deciding, m.estimatedTol
		for j, yNorm := range m.Problem.Norms {
			m.Noise.Relative = append(m.Noise.Relative, 0)
			if yNorm > 0 {
				m.Noise.Relative[j] = m.noiseOf(iteration, j)
			}
		}
	}
	return nil
}

// decidingNoise returns the noise that determines the tolerance, at most 1: for classes, whose columns decide together,
// their root mean square, and otherwise the smallest of the columns whose residual is above τ.
func (m *Monitor) decidingNoise(iteration *pcg.Iteration) float64 {
	smallest, squares, columns := 1., 0., 0.
	for j, relRes := range iteration.RelRes {
		if m.Problem.Norms[j] == 0 {
			continue
		}
		noise := m.noiseOf(iteration, j)
		squares, columns = squares+noise*noise, columns+1
		if relRes > m.Tol {
			smallest = min(smallest, noise)
		}
	}
	if m.Classes {
		return min(1, math.Sqrt(squares/columns))
	}
	return smallest
}

// noiseTol returns noiseShare of the noise, rounded down to two digits, but at least τ.
func (m *Monitor) noiseTol(noise float64) float64 {
	tol := noiseShare * noise
	digit := math.Pow(10, math.Floor(math.Log10(tol))-1)
	return max(math.Floor(tol/digit)*digit, m.Tol)
}

// noiseOf returns an estimate of the noise of column j relative to ‖y_j‖₂.
func (m *Monitor) noiseOf(iteration *pcg.Iteration, j int) float64 {
	return m.Problem.Lambda * iteration.XNorm[j] / m.Problem.Norms[j] / (noiseShare + m.Noise.Trace)
}

// TraceEstimate returns an upper estimate of λ·tr(A⁻¹)/n, A = K+λI, of at most 1. The estimate uses conjugate gradients
// for a vector z of n random signs, for which the expectation of λzᵀA⁻¹z is λ·tr(A⁻¹). decrease has the decreases of
// ‖e‖_A²/‖z‖₂², for the error e of the iterate, in all iterations, and residual is the last residual relative to ‖z‖₂.
//
// The sum of the decreases approaches zᵀA⁻¹z/n from below, with an error of at most residual²/λ. Let S be the sum over
// all iterations, and g the fraction of S that the second half of them contributes. If both halves belonged to a
// geometric series, S·g²/(1−2g) would be missing. The estimate adds S·g/(1−2g), but at most residual², and then three
// standard deviations of the random signs, whose variance is at most 2b(1−b)/n for λ·tr(A⁻¹)/n = b.
func TraceEstimate(decrease []float64, residual, lambda float64, n int) float64 {
	var sum, firstHalf float64
	for k, term := range decrease {
		if sum += lambda * term; k < (len(decrease)+1)/2 {
			firstHalf = sum
		}
	}
	missing := residual * residual
	if 2*firstHalf > sum {
		missing = min(missing, sum*(sum-firstHalf)/(2*firstHalf-sum))
	}
	bound := min(1, sum+missing)
	return min(1, bound+3*math.Sqrt(2*bound*(1-bound)/float64(n)))
}
