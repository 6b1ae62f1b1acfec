package statdim

import (
	"context"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/precond"
)

// matrix is the symmetric positive semi-definite n×n matrix K. *gram.Matrix implements it.
type matrix interface {
	// Dim returns the order n.
	Dim() int
	// Trace returns tr K.
	Trace() float64
	// KMulTo sets dst = K·src, n×t.
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}

// problem has the matrix and the λ for which s_λ(K) is estimated, with A = K+λI.
type problem struct {
	K      matrix
	Lambda float64 // λ > 0
	Error  float64 // e ≥ ‖K_stored−K‖₂; 0 if K is exact
	// ProductRounding is a bound u of ‖D‖₂ if products with the stored K round v and are K(I+D)v instead of Kv
	// (gram.Matrix.ProductRounding); 0: products are exact.
	ProductRounding float64

	// Control is M = ZZᵀ+λ_pI in the form of the eigenvalues and eigenvectors of ZᵀZ. It is the preconditioner, and
	// gives the control variate; nil: there is neither.
	Control *precond.Woodbury
}

// lambdaGrid returns the values of λ of a curve in ascending order, without duplicates.
func lambdaGrid(lambda float64, extraLambdas []float64) []float64 {
	return slices.Compact(slices.Sorted(slices.Values(append([]float64{lambda}, extraLambdas...))))
}

// traceBounds returns the smallest and the largest possible s_λ of a positive semi-definite n×n matrix with trace T:
// T/(T+λ) and nT/(T+nλ).
func traceBounds(n int, trace, lambda float64) (lo, hi float64) {
	if !(trace > 0) {
		return 0, 0
	}
	return trace / (trace + lambda), float64(n) * trace / (trace + float64(n)*lambda)
}

// storageError returns (e/λ)·min(n−s, 2s) + u·√(s(n−s)), the error of an estimate s due to the stored K and to products
// with it. Products K(I+D)v, ‖D‖₂ ≤ u, change the form zᵀ(I−λA⁻¹)z by (KA⁻¹z)ᵀD(λA⁻¹z), where ‖KA⁻¹z‖² ≤ s and ‖λA⁻¹z‖²
// ≤ n−s on average.
func (p *problem) storageError(s float64) float64 {
	n := float64(p.K.Dim())
	return p.Error/p.Lambda*max(0, min(n-s, 2*s)) + p.ProductRounding*math.Sqrt(max(0, s*(n-s)))
}

// eigenvalueBound returns λ−e, a lower bound of the smallest eigenvalue of the stored K+λI, but at least λ/2. If e is
// above λ/2, the stored K is too inaccurate for λ, and Estimates.Storage is large.
func (p *problem) eigenvalueBound() float64 { return max(p.Lambda-p.Error, p.Lambda/2) }

// minHalfWidth returns the smallest half-width to report for m probes and an estimate s without a control variate; with
// a control variate it returns 0. It is the half-width of a normal variable of variance 2θ², θ = min(tr K/(tr K+λ),
// n−s): that of zᵀKA⁻¹z if KA⁻¹ has one dominant eigenvector, as it has if K has a group of equal rows. A few probes
// may all have nearly the same component along this eigenvector, and their spread is then far below the true deviation.
func (p *problem) minHalfWidth(s float64, m int, confidence float64) float64 {
	if p.Control != nil {
		return 0
	}
	n := float64(p.K.Dim())
	lo, hi := traceBounds(p.K.Dim(), p.K.Trace(), p.Lambda)
	s = max(lo, min(s, hi))
	theta := max(0, min(lo, n-s)) // lo ≤ s
	return estimate.StudentHalfWidth(confidence, float64(m-1)) * theta * math.Sqrt(2/float64(m))
}

// setEstimate sets e.Estimate, the parts of its half-width, and VarianceExplained from the values of the probes.
func (p *problem) setEstimate(e *Estimates, values *probeValues, options *Options, method string) {
	var controlMean, value float64
	if p.Control != nil {
		controlMean = p.Control.StatDim() // the expectation of the control variate
	}
	value, e.Sampling, e.Truncation, e.VarianceExplained = values.predictAt(controlMean, options.Confidence)
	e.Sampling = max(e.Sampling, p.minHalfWidth(value, len(values.y), options.Confidence))
	e.Estimate = p.interval(e, value, options, method)
}

// interval returns value ± (e.Sampling+e.Truncation+e.Storage), cut to the certain bounds of the trace (traceBounds).
// It sets e.Storage.
func (p *problem) interval(e *Estimates, value float64, options *Options, method string) estimate.Interval {
	lo, hi := traceBounds(p.K.Dim(), p.K.Trace(), p.Lambda)
	value = max(lo, min(value, hi))
	e.Storage = p.storageError(value)
	halfWidth := e.Sampling + e.Truncation + e.Storage
	return estimate.Interval{
		Value: value, Lo: max(lo, value-halfWidth), Hi: min(hi, value+halfWidth), Confidence: options.Confidence,
		Method: method,
	}
}

// narrowInterval calls addProbes with an increasing total number m of probes, the tolerance of their solves and the
// estimate so far, until the interval is as narrow as requested, there are MaxProbes probes, or more probes cannot make
// the interval narrow enough. It returns the last result of addProbes. If addProbes returns an error, narrowInterval
// returns the previous result, nil if there is none, together with the error.
func (p *problem) narrowInterval(options *Options, addProbes func(m int, tol float64,
	current estimate.Interval) (*Estimates, error)) (result *Estimates, err error) {
	start, m, current := time.Now(), options.probes, estimate.Interval{}
	for guess := p.initialGuess(); ; guess = current.Value {
		estimates, err := addProbes(m, p.probeTolerance(options, guess), current)
		if err != nil {
			return result, err
		}
		result, current = estimates, estimates.Estimate
		result.Estimate.Seconds = time.Since(start).Seconds()
		result.WidthReached = current.RelativeWidth() <= options.Width
		if result.WidthReached || m >= options.MaxProbes || !result.probesCanNarrow(options) {
			return result, nil
		}
		m = options.nextProbeCount(m, current.RelativeWidth())
	}
}

// nextProbeCount returns the next total number of probes, after m probes gave an interval of the given relative width.
// It assumes that the width is proportional to 1/√m, and adds a tenth to the number of probes that would then be
// enough. The result is at least m+8 and at most 2m, or m+8 if that is more, and never more than MaxProbes.
func (o *Options) nextProbeCount(m int, width float64) int {
	required := int(math.Ceil(1.1 * float64(m) * (width / o.Width) * (width / o.Width)))
	return min(max(min(required, 2*m), m+8), o.MaxProbes)
}

// probeValues holds the values of the probes z. The expectation of w is known.
type probeValues struct {
	y          []float64 // zᵀ(I−λA⁻¹)z of each probe
	halfWidths []float64 // bound of the error of each y, the half-width of its interval
	w          []float64 // control variate of each probe; empty without one
}

// minFitProbes is the smallest number of probes for which the coefficient of the control variate is fitted. With fewer,
// the control variate is ignored.
const minFitProbes = 8

// predictAt returns the value at w = mean of the least-squares line through the m points (w_i, y_i),
//
//	value = Σ_i v_i y_i,  v_i = 1/m + (mean−w̄)(w_i−w̄)/S_ww,
//
// where w̄ is the mean of the w_i, S_ww = Σ_i (w_i−w̄)², and S_yy likewise. sampling is the half-width of the Student
// interval of value with m−2 degrees of freedom, q·σ̂·√(1/m + (mean−w̄)²/S_ww), where q is the quantile of Student's
// distribution and σ̂ the standard deviation of the residuals r_i of the line. truncation is Σ_i |v_i|·halfWidths_i,
// and explained is the share of the variance that the line explains, 1 − Σ_i r_i²/S_yy. Without control variates, value
// is the mean of y, with m−1 degrees of freedom.
//
// If y−w varies mostly along one direction, the probes far from w̄ have the large errors, which σ̂ averages out.
// sampling is therefore at least q times the jackknife's deviation, √(Σ_i v_i²r_i²/(1−h_i)²), with the leverages h_i =
// 1/m + (w_i−w̄)²/S_ww.
func (p *probeValues) predictAt(mean, confidence float64) (value, sampling, truncation, explained float64) {
	w := p.w
	if len(w) == 0 || len(p.y) < minFitProbes {
		w = make([]float64, len(p.y))
	}
	m, ybar, wbar := float64(len(p.y)), stat.Mean(p.y, nil), stat.Mean(w, nil)
	var sww, swy, syy, rss, jackknife float64
	for i, y := range p.y {
		sww += (w[i] - wbar) * (w[i] - wbar)
		swy += (w[i] - wbar) * (y - ybar)
		syy += (y - ybar) * (y - ybar)
	}
	value, slope, degreesOfFreedom, leverage := ybar, 0.0, m-1, 1/m
	if sww > 0 {
		slope, degreesOfFreedom = swy/sww, m-2
		value += slope * (mean - wbar)
		leverage += (mean - wbar) * (mean - wbar) / sww
	}
	for i, y := range p.y {
		centered := w[i] - wbar
		residual, weight, probeLeverage := y-ybar-slope*centered, 1/m, 1/m
		rss += residual * residual
		if sww > 0 {
			weight += (mean - wbar) * centered / sww
			probeLeverage += centered * centered / sww
			jackknife += weight * weight * residual * residual / max(0x1p-40, (1-probeLeverage)*(1-probeLeverage))
		}
		truncation += math.Abs(weight) * p.halfWidths[i]
	}
	if syy > 0 {
		explained = 1 - rss/syy
	}
	sampling = estimate.StudentHalfWidth(confidence, degreesOfFreedom) *
		math.Sqrt(max(rss/degreesOfFreedom*leverage, jackknife))
	return value, sampling, truncation, explained
}

// columnDots returns the inner products a_jᵀb_j of all pairs of columns of a and b. Each is summed over blocks of rows,
// which keeps rounding errors small, in an order that depends only on n.
func columnDots(a, b *mat.Dense) []float64 {
	const blockRows = 512
	rawA, rawB := a.RawMatrix(), b.RawMatrix()
	sum, blockSum := make([]float64, rawA.Cols), make([]float64, rawA.Cols)
	for i0 := 0; i0 < rawA.Rows; i0 += blockRows {
		clear(blockSum)
		for i := i0; i < min(i0+blockRows, rawA.Rows); i++ {
			rowB := rawB.Data[i*rawB.Stride : i*rawB.Stride+rawA.Cols]
			for j, v := range rawA.Data[i*rawA.Stride : i*rawA.Stride+rawA.Cols] {
				blockSum[j] += v * rowB[j]
			}
		}
		for j, v := range blockSum {
			sum[j] += v
		}
	}
	return sum
}
