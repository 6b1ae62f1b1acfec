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

// matrix is the symmetric positive semi-definite n×n matrix K. *gram.Matrix is one.
type matrix interface {
	Dim() int
	// Trace returns tr K.
	Trace() float64
	// KMulTo sets dst = K·src, n×t.
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Problem asks for s_λ(K).
type problem struct {
	K      matrix
	Lambda float64 // λ > 0
	// Error is e ≥ ‖K_stored−K‖₂, 0 for a K that is exact.
	Error float64
	// Unit is u where a product Kv has a further error of u·‖Kv‖₂: float32 tiles round v.
	Unit float64
	// Control is M = ZZᵀ+λ_pI in the eigen form: preconditioner and control variate. Nil
	// means neither.
	Control *precond.Woodbury
}

// grid returns the λ of a curve, ascending: that asked for, and more.
func grid(lambda float64, more []float64) []float64 {
	return slices.Compact(slices.Sorted(slices.Values(append([]float64{lambda}, more...))))
}

// traceBounds returns the least and the largest s_λ that a positive semi-definite n×n matrix
// of trace t can have, t/(t+λ) and nt/(t+nλ).
func traceBounds(n int, t, lambda float64) (lo, hi float64) {
	if !(t > 0) {
		return 0, 0
	}
	return t / (t + lambda), float64(n) * t / (t + float64(n)*lambda)
}

// storage returns (e/λ)·min(n−s, 2s) + u·√(s(n−s)), the allowance for K as stored and for products with it at an
// estimate s: of products K(I+D)v, ‖D‖₂ ≤ u, the form zᵀ(I−λA⁻¹)z has the error (KA⁻¹z)ᵀD(λA⁻¹z), and ‖KA⁻¹z‖² ≤ s,
// ‖λA⁻¹z‖² ≤ n−s on average.
func (p *problem) storage(s float64) float64 {
	n := float64(p.K.Dim())
	return p.Error/p.Lambda*max(0, min(n-s, 2*s)) + p.Unit*math.Sqrt(max(0, s*(n-s)))
}

// room returns λ−e, what the least eigenvalue of K+λI as stored is at least; at the least
// λ/2, where K is too coarse for λ and Storage says so.
func (p *problem) room() float64 { return max(p.Lambda-p.Error, p.Lambda/2) }

// unseen returns the least half-width by m probes of signs that is claimed at an estimate s without a control
// variate: that of one direction of KA⁻¹, of variance 2θ², θ = min(tr K/(tr K+λ), n−s), as if it were normal. A group
// of equal rows is such a direction, and few probes may hardly see it: their spread is then far below the truth, or
// 0.
func (p *problem) unseen(s float64, m int, confidence float64) float64 {
	if p.Control != nil {
		return 0
	}
	n := float64(p.K.Dim())
	lo, hi := traceBounds(p.K.Dim(), p.K.Trace(), p.Lambda)
	s = max(lo, min(s, hi))
	theta := max(0, min(lo, n-s)) // lo ≤ s
	return estimate.Student(confidence, float64(m-1)) * theta * math.Sqrt(2/float64(m))
}

// conclude puts together what a sample says.
func (p *problem) conclude(r *Numbers, s *sample, o *Options, method string) {
	var mean, a float64
	if p.Control != nil {
		mean = p.Control.StatDim()
	}
	a, r.Sampling, r.Truncation, r.Explained = s.fit(mean, o.Confidence)
	r.Sampling = max(r.Sampling, p.unseen(a, len(s.y), o.Confidence))
	r.Estimate = p.interval(r, a, o, method)
}

// interval puts the parts together: value ± (sampling+truncation+storage), within the
// certain bounds.
func (p *problem) interval(r *Numbers, value float64, o *Options, method string) estimate.Interval {
	lo, hi := traceBounds(p.K.Dim(), p.K.Trace(), p.Lambda)
	value = max(lo, min(value, hi))
	r.Storage = p.storage(value)
	half := r.Sampling + r.Truncation + r.Storage
	return estimate.Interval{
		Value: value, Lo: max(lo, value-half), Hi: min(hi, value+half), Confidence: o.Confidence, Method: method,
	}
}

// narrow lets batches go on to m probes in all, and to more, until the interval is as narrow as asked, or no more can
// make it so. If one fails it returns what those before gave, beside the error.
func (p *problem) narrow(o *Options, m int, batch func(m int, tol float64, so *Numbers) (*Numbers,
	error)) (res *Numbers, err error) {
	start := time.Now()
	for s := p.guess(); ; s = res.Estimate.Value {
		next, err := batch(m, p.tolerance(o, s), res)
		if err != nil {
			return res, err
		}
		res = next
		res.Estimate.Seconds, res.Reached = time.Since(start).Seconds(), res.Estimate.Width() <= o.Width
		if res.Reached || m >= o.MaxProbes || !res.gains(o) {
			return res, nil
		}
		m = o.next(m, res.Estimate.Width())
	}
}

// next returns how many probes to have after m gave an interval of relative width w: by the
// law 1/√m with a tenth in reserve, at most twice as many, at least 8 more.
func (o *Options) next(m int, w float64) int {
	want := int(math.Ceil(1.1 * float64(m) * (w / o.Width) * (w / o.Width)))
	return min(max(min(want, 2*m), m+8), o.MaxProbes)
}

// sample holds what each probe i gave: y_i known to ± half_i, and the control w_i, whose
// mean over all probes is known.
type sample struct {
	y, half, w []float64
}

// fewest probes for which a coefficient is fitted.
const fewest = 8

// fit returns the intercept of the line through (w_i, y_i) at w = mean,
//
//	a = Σ_i v_i y_i,  v_i = 1/m + (mean−w̄)(w_i−w̄)/S_ww,
//
// the half-width of its Student interval with m−2 degrees of freedom,
// t·σ̂·√(1/m + (mean−w̄)²/S_ww), and the truncation Σ_i |v_i|·half_i. Without controls it is
// the mean of y with m−1 degrees of freedom. explained is 1 − (residual sum of squares)/S_yy.
//
// Where y−w varies mostly along one direction the probes far from w̄ have the large errors, which σ̂ averages out:
// the half-width is no less than t times the jackknife's deviation, √(Σ_i v_i²r_i²/(1−h_i)²), h_i = 1/m +
// (w_i−w̄)²/S_ww.
func (s *sample) fit(mean, confidence float64) (a, sampling, truncation, explained float64) {
	m := float64(len(s.y))
	ybar, wbar, slope, sww := stat.Mean(s.y, nil), 0.0, 0.0, 0.0
	dof := m - 1
	if len(s.w) > 0 && len(s.y) >= fewest {
		wbar = stat.Mean(s.w, nil)
		var swy float64
		for i, w := range s.w {
			sww += (w - wbar) * (w - wbar)
			swy += (w - wbar) * (s.y[i] - ybar)
		}
		if sww > 0 {
			slope = swy / sww
			dof = m - 2
		}
	}
	var rss, syy float64
	at := func(i int) float64 {
		if sww == 0 {
			return 0
		}
		return s.w[i] - wbar
	}
	leverage := 1 / m
	if sww > 0 {
		leverage += (mean - wbar) * (mean - wbar) / sww
	}
	var jackknife float64
	for i, y := range s.y {
		r := y - ybar - slope*at(i)
		rss += r * r
		syy += (y - ybar) * (y - ybar)
		v, h := 1/m, 1/m
		if sww > 0 {
			v += (mean - wbar) * at(i) / sww
			h += at(i) * at(i) / sww
			jackknife += v * v * r * r / max(0x1p-40, (1-h)*(1-h))
		}
		truncation += math.Abs(v) * s.half[i]
	}
	a = ybar
	if sww > 0 {
		a += slope * (mean - wbar)
	}
	if syy > 0 {
		explained = 1 - rss/syy
	}
	sampling = estimate.Student(confidence, dof) * math.Sqrt(max(rss/dof*leverage, jackknife))
	return a, sampling, truncation, explained
}

// dots returns a_jᵀb_j of the columns, summed in an order fixed by n.
func dots(a, b *mat.Dense) []float64 {
	ra, rb := a.RawMatrix(), b.RawMatrix()
	sum, part := make([]float64, ra.Cols), make([]float64, ra.Cols)
	for i0 := 0; i0 < ra.Rows; i0 += 512 {
		clear(part)
		for i := i0; i < min(i0+512, ra.Rows); i++ {
			x, y := ra.Data[i*ra.Stride:i*ra.Stride+ra.Cols], rb.Data[i*rb.Stride:i*rb.Stride+ra.Cols]
			for j, v := range x {
				part[j] += v * y[j]
			}
		}
		for j, v := range part {
			sum[j] += v
		}
	}
	return sum
}
