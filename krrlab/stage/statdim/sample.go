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
	Dim() int
	// Trace returns tr K.
	Trace() float64
	// KMulTo sets dst = K·src, n×t.
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}

// problem is the matrix and the λ to compute s_λ(K) for.
type problem struct {
	K      matrix
	Lambda float64 // λ > 0
	Error  float64 // e ≥ ‖K_stored−K‖₂; 0 if K is exact
	// ProductRounding is u ≥ ‖D‖₂ if products with the stored K are K(I+D)v, because v is rounded (gram.Matrix.Unit);
	// 0: they are exact.
	ProductRounding float64

	// Control is M = ZZᵀ+λ_pI in the eigen form, used as preconditioner and control variate; nil: neither.
	Control *precond.Woodbury
}

// grid returns the values of λ of a curve in ascending order, without duplicates.
func grid(lambda float64, extraLambdas []float64) []float64 {
	return slices.Compact(slices.Sorted(slices.Values(append([]float64{lambda}, extraLambdas...))))
}

// traceBounds returns the smallest and the largest possible s_λ of a positive semi-definite n×n matrix of trace t,
// t/(t+λ) and nt/(t+nλ).
func traceBounds(n int, t, lambda float64) (lo, hi float64) {
	if !(t > 0) {
		return 0, 0
	}
	return t / (t + lambda), float64(n) * t / (t + float64(n)*lambda)
}

// storageError returns (e/λ)·min(n−s, 2s) + u·√(s(n−s)), the error of an estimate s due to the stored K and to products
// with it. Products K(I+D)v, ‖D‖₂ ≤ u, change the form zᵀ(I−λA⁻¹)z by (KA⁻¹z)ᵀD(λA⁻¹z), where ‖KA⁻¹z‖² ≤ s and ‖λA⁻¹z‖²
// ≤ n−s on average.
func (p *problem) storageError(s float64) float64 {
	n := float64(p.K.Dim())
	return p.Error/p.Lambda*max(0, min(n-s, 2*s)) + p.ProductRounding*math.Sqrt(max(0, s*(n-s)))
}

// eigenvalueBound returns λ−e, a lower bound for the smallest eigenvalue of the stored K+λI, but at least λ/2. The
// stored K is too coarse for λ if that minimum applies, and Estimates.Storage then shows it.
func (p *problem) eigenvalueBound() float64 { return max(p.Lambda-p.Error, p.Lambda/2) }

// minHalfWidth returns the smallest half-width to report for m probes of signs at an estimate s without a control
// variate; with a control variate it is 0. It is the half-width for one direction of KA⁻¹ with variance 2θ², θ = min(tr
// K/(tr K+λ), n−s), as if it were normal. A group of equal rows is such a direction. A few probes may all have nearly
// the same component in it, and their spread is then far below the true deviation, or 0.
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

// setEstimate sets the estimate of r, the parts of its half-width and VarianceExplained from the samples.
func (p *problem) setEstimate(r *Estimates, samples *sample, o *Options, method string) {
	var mean, intercept float64
	if p.Control != nil {
		mean = p.Control.StatDim()
	}
	intercept, r.Sampling, r.Truncation, r.VarianceExplained = samples.predictAt(mean, o.Confidence)
	r.Sampling = max(r.Sampling, p.minHalfWidth(intercept, len(samples.y), o.Confidence))
	r.Estimate = p.interval(r, intercept, o, method)
}

// interval returns value ± (sampling+truncation+storage), cut to the certain bounds of the trace. It sets r.Storage.
func (p *problem) interval(r *Estimates, value float64, o *Options, method string) estimate.Interval {
	lo, hi := traceBounds(p.K.Dim(), p.K.Trace(), p.Lambda)
	value = max(lo, min(value, hi))
	r.Storage = p.storageError(value)
	half := r.Sampling + r.Truncation + r.Storage
	return estimate.Interval{
		Value: value, Lo: max(lo, value-half), Hi: min(hi, value+half), Confidence: o.Confidence, Method: method,
	}
}

// narrowInterval calls batch with an increasing total number m of probes, the tolerance of their solves and the
// estimate so far. It ends when the interval is as narrow as requested, when there are MaxProbes probes, or when more
// probes cannot make the interval narrow enough. If a batch fails, it returns the result of the previous batches
// together with the error.
func (p *problem) narrowInterval(o *Options, batch func(m int, tol float64, current estimate.Interval) (*Estimates,
	error)) (res *Estimates, err error) {
	start, m, current := time.Now(), o.probes, estimate.Interval{}
	for guess := p.initialGuess(); ; guess = current.Value {
		numbers, err := batch(m, p.tolerance(o, guess), current)
		if err != nil {
			return res, err
		}
		res, current = numbers, numbers.Estimate
		res.Estimate.Seconds, res.WidthReached = time.Since(start).Seconds(), current.RelativeWidth() <= o.Width
		if res.WidthReached || m >= o.MaxProbes || !res.probesCanNarrow(o) {
			return res, nil
		}
		m = o.nextProbeCount(m, current.RelativeWidth())
	}
}

// nextProbeCount returns the next total number of probes, after m probes gave an interval of relative width w. It
// assumes a width proportional to 1/√m and adds a tenth, but at most doubles m and adds at least 8.
func (o *Options) nextProbeCount(m int, w float64) int {
	required := int(math.Ceil(1.1 * float64(m) * (w / o.Width) * (w / o.Width)))
	return min(max(min(required, 2*m), m+8), o.MaxProbes)
}

// sample holds the values of the probes. The expectation of w is known.
type sample struct {
	y          []float64 // zᵀ(I−λA⁻¹)z of each probe
	halfWidths []float64 // bound of the error of each y, the half-width of its interval
	w          []float64 // control variate of each probe; empty without one
}

// minFitProbes is the smallest number of probes for which the coefficient of the control variate is fitted. With fewer,
// the control variate is ignored.
const minFitProbes = 8

// predictAt returns the value at w = mean of the least-squares line through the points (w_i, y_i),
//
//	a = Σ_i v_i y_i,  v_i = 1/m + (mean−w̄)(w_i−w̄)/S_ww,
//
// the half-width of its Student interval with m−2 degrees of freedom, t·σ̂·√(1/m + (mean−w̄)²/S_ww), the truncation
// Σ_i |v_i|·halfWidths_i, and the explained share of the variance, 1 − (residual sum of squares)/S_yy. Without
// controls, the estimate is the mean of y, with m−1 degrees of freedom.
//
// If y−w varies mostly along one direction, the probes far from w̄ have the large errors, which σ̂ averages out. The
// half-width is therefore at least t times the jackknife's deviation, √(Σ_i v_i²r_i²/(1−h_i)²), h_i = 1/m +
// (w_i−w̄)²/S_ww.
func (s *sample) predictAt(mean, confidence float64) (value, sampling, truncation, explained float64) {
	w := s.w
	if len(w) == 0 || len(s.y) < minFitProbes {
		w = make([]float64, len(s.y))
	}
	m, ybar, wbar := float64(len(s.y)), stat.Mean(s.y, nil), stat.Mean(w, nil)
	var sww, swy, syy, rss, jackknife float64
	for i, y := range s.y {
		sww += (w[i] - wbar) * (w[i] - wbar)
		swy += (w[i] - wbar) * (y - ybar)
		syy += (y - ybar) * (y - ybar)
	}
	value, slope, dof, leverage := ybar, 0.0, m-1, 1/m
	if sww > 0 {
		slope, dof = swy/sww, m-2
		value += slope * (mean - wbar)
		leverage += (mean - wbar) * (mean - wbar) / sww
	}
	for i, y := range s.y {
		centered := w[i] - wbar
		r, v, h := y-ybar-slope*centered, 1/m, 1/m
		rss += r * r
		if sww > 0 {
			v += (mean - wbar) * centered / sww
			h += centered * centered / sww
			jackknife += v * v * r * r / max(0x1p-40, (1-h)*(1-h))
		}
		truncation += math.Abs(v) * s.halfWidths[i]
	}
	if syy > 0 {
		explained = 1 - rss/syy
	}
	sampling = estimate.StudentHalfWidth(confidence, dof) * math.Sqrt(max(rss/dof*leverage, jackknife))
	return value, sampling, truncation, explained
}

// dots returns a_jᵀb_j for all columns j, summed in an order that depends only on n.
func dots(a, b *mat.Dense) []float64 {
	ra, rb := a.RawMatrix(), b.RawMatrix()
	sum, blockSum := make([]float64, ra.Cols), make([]float64, ra.Cols)
	for i0 := 0; i0 < ra.Rows; i0 += 512 {
		clear(blockSum)
		for i := i0; i < min(i0+512, ra.Rows); i++ {
			x, y := ra.Data[i*ra.Stride:i*ra.Stride+ra.Cols], rb.Data[i*rb.Stride:i*rb.Stride+ra.Cols]
			for j, v := range x {
				blockSum[j] += v * y[j]
			}
		}
		for j, v := range blockSum {
			sum[j] += v
		}
	}
	return sum
}
