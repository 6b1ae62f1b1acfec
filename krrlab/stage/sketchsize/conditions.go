package sketchsize

import (
	"context"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/precond"
)

// Conditions is what Theorem 7's conditions ask about, measured on one Z. Its intervals hold
// together with the probability that was asked for.
type Conditions struct {
	Rank int `json:"rank"` // of P: eigenvalues of ZZᵀ above θλ
	// Norm is ‖(I−P)K(I−P)‖₂/λ, which condition 1 wants at most α.
	Norm estimate.Interval `json:"norm"`
	// Low and High are the extreme eigenvalues of (WᵀKW, WᵀZZᵀW), W an orthonormal basis
	// of range(P), which condition 2 wants in [1−γ, 1+γ]; both 1 if P = 0.
	Low     estimate.Interval `json:"low"`
	High    estimate.Interval `json:"high"`
	First   Verdict           `json:"condition_1"`
	Second  Verdict           `json:"condition_2"`
	Seconds float64           `json:"seconds"`
}

// Verdict says what is known of a condition, or decided of a rung.
type Verdict string

const (
	Accept Verdict = "accept" // it holds, with the stated probability
	Reject Verdict = "reject" // it does not, for certain (up to rounding)
	Open   Verdict = "open"   // the interval lies across the threshold: not accepted
)

// verdict returns Accept of what surely holds, Reject of what surely does not, and else Open.
func verdict(holds, fails bool) Verdict {
	switch {
	case fails:
		return Reject
	case holds:
		return Accept
	}
	return Open
}

// both returns the verdict on two conditions that must hold together.
func both(a, b Verdict) Verdict {
	return verdict(a == Accept && b == Accept, a == Reject || b == Reject)
}

// atMost and atLeast judge a number by its interval.
func atMost(e estimate.Interval, limit float64) Verdict { return verdict(e.Hi <= limit, e.Lo > limit) }

func atLeast(e estimate.Interval, limit float64) Verdict { return verdict(e.Lo >= limit, e.Hi < limit) }

// spectral is P by its eigenvectors: with ẐᵀẐ = VΣ̂²Vᵀ, W = ẐV_rΣ̂_r⁻¹ has the r eigenvectors of
// ZZᵀ whose eigenvalues σ̂²/c exceed θλ, the last r of Σ̂².
type spectral struct {
	w      *precond.Woodbury
	c      float64
	sigma2 []float64 // Σ̂², ascending
	rank   int
	short  *mat.Dense // s×1
	x, y   *mat.Dense // n×1, of the operators below
}

// newSpectral decomposes ẐᵀẐ. Eigenvalues below what float64 resolves, 64·2⁻⁵³·s·σ₁², count as 0.
func newSpectral(ctx context.Context, l *ladder, threshold float64) (*spectral, error) {
	w, err := l.inverse(ctx, 1, precond.FormEigen)
	if err != nil {
		return nil, err
	}
	p := &spectral{w: w, c: l.scale(), sigma2: w.Eigenvalues(), short: mat.NewDense(l.z.D, 1, nil),
		x: mat.NewDense(w.Dim(), 1, nil), y: mat.NewDense(w.Dim(), 1, nil)}
	s := len(p.sigma2)
	limit := max(p.c*threshold, 64*0x1p-53*float64(s)*p.sigma2[s-1])
	for _, v := range p.sigma2 {
		if v > limit {
			p.rank++
		}
	}
	return p, nil
}

// complement sets dst = (I−P)src = src − ẐV_rΣ̂_r⁻²V_rᵀẐᵀsrc. They must not be the same.
func (p *spectral) complement(ctx context.Context, dst, src *mat.Dense) error {
	if p.rank == 0 {
		dst.Copy(src)
		return nil
	}
	if err := p.w.ZVTransMulTo(ctx, p.short, src); err != nil {
		return err
	}
	s := len(p.sigma2)
	for i, v := range p.sigma2 {
		y := 0.0
		if i >= s-p.rank {
			y = p.short.At(i, 0) / v
		}
		p.short.Set(i, 0, y)
	}
	if err := p.w.ZVMulTo(ctx, dst, p.short); err != nil {
		return err
	}
	dst.Sub(src, dst)
	return nil
}

// rest is (I−P)K(I−P), of order n.
type rest struct {
	*spectral
	k Operator
}

func (a *rest) Dim() int { return a.w.Dim() }

func (a *rest) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if err := a.complement(ctx, a.x, src); err != nil { // (I−P)src
		return err
	}
	if err := a.k.KMulTo(ctx, a.y, a.x); err != nil {
		return err
	}
	return a.complement(ctx, dst, a.y)
}

// quotient is D^(-½)WᵀKWD^(-½), of order r, with D = WᵀZZᵀW = Σ̂_r²/c, which is diagonal: with
// B = WD^(-½) = √c·ẐV_rΣ̂_r⁻² it is BᵀKB.
type quotient struct {
	*spectral
	k Operator
}

func (a *quotient) Dim() int { return a.rank }

func (a *quotient) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	a.short.Zero()
	first := len(a.sigma2) - a.rank
	for i := range a.rank {
		a.short.Set(first+i, 0, src.At(i, 0)/a.sigma2[first+i])
	}
	if err := a.w.ZVMulTo(ctx, a.x, a.short); err != nil { // ẐV_rΣ̂_r⁻²src
		return err
	}
	if err := a.k.KMulTo(ctx, a.y, a.x); err != nil {
		return err
	}
	if err := a.w.ZVTransMulTo(ctx, a.short, a.y); err != nil {
		return err
	}
	for i := range a.rank {
		dst.Set(i, 0, a.c*a.short.At(first+i, 0)/a.sigma2[first+i])
	}
	return nil
}

// conditions measures both conditions of c on the ladder's Z, with the probability 1−delta, of
// which condition 1 takes one part and the two ends of condition 2 two.
func (s *search) conditions(ctx context.Context, l *ladder, c Test, delta float64, g rng.Stream) (out *Conditions,
	products int, err error) {
	began := time.Now()
	p, err := newSpectral(ctx, l, c.Theta*s.p.Lambda)
	if err != nil {
		return nil, 0, err
	}
	out = &Conditions{
		Rank: p.rank, Norm: estimate.Exact(0, 0, "P = I"),
		Low: estimate.Exact(1, 0, "P = 0"), High: estimate.Exact(1, 0, "P = 0"),
	}
	if p.rank < s.n {
		o := s.options(1-delta/3, g.Sub("condition 1"), func(r *lanczos.Result) judgement {
			return ofNorm(r, s.p.Error, c.Alpha*s.p.Lambda)
		})
		o.Ends = lanczos.Largest
		r, err := lanczos.Run(ctx, &rest{p, s.p.K}, o)
		if err != nil {
			return nil, 0, err
		}
		out.Norm = scaled(r.Max.Widened(s.p.Error), 1/s.p.Lambda)
		products += r.MulTo.Calls
	}
	if p.rank > 0 {
		e := s.p.Error * p.c / p.sigma2[len(p.sigma2)-p.rank] // ‖D^(-½)WᵀEWD^(-½)‖₂ ≤ ‖E‖₂/min σ², E = K_stored−K
		r, err := lanczos.Run(ctx, &quotient{p, s.p.K}, s.options(1-2*delta/3, g.Sub("condition 2"),
			func(r *lanczos.Result) judgement { return ofRatios(r, e, c.Gamma) }))
		if err != nil {
			return nil, 0, err
		}
		out.Low, out.High = r.Min.Widened(e), r.Max.Widened(e)
		products += r.MulTo.Calls
	}
	out.First, out.Second = atMost(out.Norm, c.Alpha), within(out.Low, out.High, c.Gamma)
	out.Seconds = time.Since(began).Seconds()
	return out, products, nil
}

// within judges condition 2.
func within(low, high estimate.Interval, gamma float64) Verdict {
	return both(atLeast(low, 1-gamma), atMost(high, 1+gamma))
}

// scaled returns the interval of f times the number.
func scaled(e estimate.Interval, f float64) estimate.Interval {
	e.Value, e.Lo, e.Hi = f*e.Value, f*e.Lo, f*e.Hi
	return e
}
