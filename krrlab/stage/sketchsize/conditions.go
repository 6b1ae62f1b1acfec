package sketchsize

import (
	"context"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
)

// Conditions are the quantities of Theorem 7's conditions, measured for one matrix Z of features, n×s. P is the
// projector on the eigenvectors of ZZᵀ whose eigenvalues exceed θλ, and Constants has θ, α and γ. All intervals hold
// together with the requested probability.
type Conditions struct {
	Rank int               `json:"rank"` // rank of P: number of eigenvalues of ZZᵀ above θλ
	Norm estimate.Interval `json:"norm"` // ‖(I−P)K(I−P)‖₂/λ; condition 1 requires at most α
	// Low and High are the extreme eigenvalues of (WᵀKW, WᵀZZᵀW), with W an orthonormal basis of range(P). Condition 2
	// requires them in [1−γ, 1+γ]. Both are 1 if P = 0.
	Low     estimate.Interval `json:"low"`
	High    estimate.Interval `json:"high"`
	First   Verdict           `json:"condition_1"` // verdict on condition 1
	Second  Verdict           `json:"condition_2"` // verdict on condition 2
	Seconds float64           `json:"seconds"`     // time of the measurements
}

// Verdict is the result of a test of a condition, or of a rung: one number of features that the search tries.
type Verdict string

const (
	Accept Verdict = "accept" // the condition holds, with the stated probability
	Reject Verdict = "reject" // the condition does not hold, for certain up to rounding
	Open   Verdict = "open"   // the interval contains the threshold: not accepted
)

// conjunction returns the verdict on two conditions that must both hold.
func conjunction(a, b Verdict) Verdict {
	switch {
	case a == Reject || b == Reject:
		return Reject
	case a == Accept && b == Accept:
		return Accept
	}
	return Open
}

// atMost returns the verdict on the condition that a number with the interval e is at most limit.
func atMost(e estimate.Interval, limit float64) Verdict {
	switch {
	case e.Lo > limit:
		return Reject
	case e.Hi <= limit:
		return Accept
	}
	return Open
}

// atLeast returns the verdict on the condition that a number with the interval e is at least limit.
func atLeast(e estimate.Interval, limit float64) Verdict {
	return atMost(estimate.Interval{Lo: -e.Hi, Hi: -e.Lo}, -limit)
}

// eigenprojector is the projector P, represented by eigenvectors. Ẑ = √c·Z is the unscaled Z of the ladder. With ẐᵀẐ =
// VΣ̂²Vᵀ, the columns of W = ẐV_rΣ̂_r⁻¹ are the r eigenvectors of ZZᵀ whose eigenvalues σ̂²/c exceed θλ; they belong to
// the last r entries of Σ̂².
type eigenprojector struct {
	k          stage.Operator
	inverse    *precond.Woodbury // ẐẐᵀ+I in the eigen form, which multiplies by ẐV
	scale      float64           // c
	sigma2     []float64         // Σ̂², ascending
	rank       int               // r
	featureVec *mat.Dense        // scratch, s×1
	x, y       *mat.Dense        // scratch of the operators below, n×1
}

// newEigenprojector decomposes ẐᵀẐ. threshold is θλ. Eigenvalues below 64·2⁻⁵³·s·σ̂₁², a generous allowance for
// rounding, count as zero.
func newEigenprojector(ctx context.Context, k stage.Operator, ladder *ladder, threshold float64) (*eigenprojector,
	error) {
	w, err := ladder.woodbury(ctx, 1, precond.FormEigen)
	if err != nil {
		return nil, err
	}
	projector := &eigenprojector{k: k, inverse: w, scale: ladder.scale(), sigma2: w.Eigenvalues(),
		featureVec: mat.NewDense(ladder.zHat.D, 1, nil),
		x:          mat.NewDense(w.Dim(), 1, nil), y: mat.NewDense(w.Dim(), 1, nil)}
	features := len(projector.sigma2)
	limit := max(projector.scale*threshold, 64*0x1p-53*float64(features)*projector.sigma2[features-1])
	for _, v := range projector.sigma2 {
		if v > limit {
			projector.rank++
		}
	}
	return projector, nil
}

// complement sets dst = (I−P)src = src − ẐV_rΣ̂_r⁻²V_rᵀẐᵀsrc. dst and src must be different matrices.
func (p *eigenprojector) complement(ctx context.Context, dst, src *mat.Dense) error {
	if p.rank == 0 {
		dst.Copy(src)
		return nil
	}
	if err := p.inverse.ZVTransMulTo(ctx, p.featureVec, src); err != nil {
		return err
	}
	s := len(p.sigma2)
	for i, v := range p.sigma2 {
		y := 0.0
		if i >= s-p.rank {
			y = p.featureVec.At(i, 0) / v
		}
		p.featureVec.Set(i, 0, y)
	}
	if err := p.inverse.ZVMulTo(ctx, dst, p.featureVec); err != nil {
		return err
	}
	dst.Sub(src, dst)
	return nil
}

// complementOperator is (I−P)K(I−P), of order n.
type complementOperator struct{ *eigenprojector }

// Dim returns n.
func (a *complementOperator) Dim() int { return a.inverse.Dim() }

// MulTo sets dst = (I−P)K(I−P)src.
func (a *complementOperator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if err := a.complement(ctx, a.x, src); err != nil { // (I−P)src
		return err
	}
	if err := a.k.KMulTo(ctx, a.y, a.x); err != nil {
		return err
	}
	return a.complement(ctx, dst, a.y)
}

// rangeOperator is D^(-½)WᵀKWD^(-½), of order r, where D = WᵀZZᵀW = Σ̂_r²/c is diagonal. With B = WD^(-½) =
// √c·ẐV_rΣ̂_r⁻² it is BᵀKB.
type rangeOperator struct{ *eigenprojector }

// Dim returns r.
func (a *rangeOperator) Dim() int { return a.rank }

// MulTo sets dst = BᵀKB·src.
func (a *rangeOperator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	a.featureVec.Zero()
	offset := len(a.sigma2) - a.rank
	for i := range a.rank {
		a.featureVec.Set(offset+i, 0, src.At(i, 0)/a.sigma2[offset+i])
	}
	if err := a.inverse.ZVMulTo(ctx, a.x, a.featureVec); err != nil { // ẐV_rΣ̂_r⁻²src
		return err
	}
	if err := a.k.KMulTo(ctx, a.y, a.x); err != nil {
		return err
	}
	if err := a.inverse.ZVTransMulTo(ctx, a.featureVec, a.y); err != nil {
		return err
	}
	for i := range a.rank {
		dst.Set(i, 0, a.scale*a.featureVec.At(offset+i, 0)/a.sigma2[offset+i])
	}
	return nil
}

// conditions measures both conditions of the test for the ladder's Z, with probability 1−delta. Condition 1 uses a
// third of delta, and the two ends of condition 2 use a third each. products is the number of products with K.
func (s *search) conditions(ctx context.Context, ladder *ladder, test ConditionConstants, delta float64,
	g rng.Stream) (result *Conditions, products int, err error) {
	start := time.Now()
	projector, err := newEigenprojector(ctx, s.problem.K, ladder, test.Theta*s.problem.Lambda)
	if err != nil {
		return nil, 0, err
	}
	result = &Conditions{
		Rank: projector.rank, Norm: estimate.Certain(0, 0, "P = I"),
		Low: estimate.Certain(1, 0, "P = 0"), High: estimate.Certain(1, 0, "P = 0"),
	}
	if projector.rank < s.n { // condition 1
		o := s.lanczosOptions(1-delta/3, g.Sub("condition 1"), func(r *lanczos.Result) lanczosState {
			return judgeNorm(r, s.problem.Error, test.Alpha*s.problem.Lambda)
		})
		o.Quantity = lanczos.LargestEigenvalue
		r, err := lanczos.Run(ctx, &complementOperator{projector}, o)
		if err != nil {
			return nil, 0, err
		}
		result.Norm = scaledInterval(r.Max.Widened(s.problem.Error), 1/s.problem.Lambda)
		products += r.Steps
	}
	if projector.rank > 0 { // condition 2
		// With E = K_stored−K, ‖D^(-½)WᵀEWD^(-½)‖₂ ≤ ‖E‖₂/min σ².
		e := s.problem.Error * projector.scale / projector.sigma2[len(projector.sigma2)-projector.rank]
		r, err := lanczos.Run(ctx, &rangeOperator{projector}, s.lanczosOptions(
			1-2*delta/3, g.Sub("condition 2"),
			func(r *lanczos.Result) lanczosState { return judgeRatios(r, e, test.Gamma) }))
		if err != nil {
			return nil, 0, err
		}
		result.Low, result.High = r.Min.Widened(e), r.Max.Widened(e)
		products += r.Steps
	}
	result.First, result.Second = atMost(result.Norm, test.Alpha), ratiosWithin(result.Low, result.High, test.Gamma)
	result.Seconds = time.Since(start).Seconds()
	return result, products, nil
}

// ratiosWithin returns the verdict on condition 2.
func ratiosWithin(low, high estimate.Interval, gamma float64) Verdict {
	return conjunction(atLeast(low, 1-gamma), atMost(high, 1+gamma))
}

// scaledInterval returns the interval of f times the number.
func scaledInterval(e estimate.Interval, f float64) estimate.Interval {
	e.Value, e.Lo, e.Hi = f*e.Value, f*e.Lo, f*e.Hi
	return e
}
