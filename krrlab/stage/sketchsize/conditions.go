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

// Conditions are the quantities of the two conditions of Theorem 7 (ConditionConstants), measured for one matrix Z of
// features, n×s. P is the projector on the eigenvectors of ZZᵀ whose eigenvalues exceed θλ; θ, α and γ are the
// constants of the theorem. All intervals hold together with the requested probability.
type Conditions struct {
	Rank int               `json:"rank"` // rank of P: number of eigenvalues of ZZᵀ above θλ
	Norm estimate.Interval `json:"norm"` // ‖(I−P)K(I−P)‖₂/λ; condition 1 requires at most α
	// Low and High are the extreme eigenvalues of (WᵀKW, WᵀZZᵀW), with W an orthonormal basis of range(P). Condition 2
	// requires them in [1−γ, 1+γ]. Both are 1 if P = 0.
	Low      estimate.Interval `json:"low"`
	High     estimate.Interval `json:"high"`
	Verdict1 Verdict           `json:"condition_1"` // verdict on condition 1
	Verdict2 Verdict           `json:"condition_2"` // verdict on condition 2
	Seconds  float64           `json:"seconds"`     // time of the measurements
}

// Verdict is the result of testing a condition, or a rung. A rung is one of the numbers s of features that a search
// tries.
type Verdict string

const (
	Accept Verdict = "accept" // the condition holds, with the stated probability
	Reject Verdict = "reject" // the condition does not hold, for certain up to rounding
	Open   Verdict = "open"   // the interval contains the threshold, and the condition is not accepted
)

// conjunction returns the verdict on two conditions that must both hold.
func conjunction(condition1, condition2 Verdict) Verdict {
	switch {
	case condition1 == Reject || condition2 == Reject:
		return Reject
	case condition1 == Accept && condition2 == Accept:
		return Accept
	}
	return Open
}

// verdictAtMost returns the verdict on the condition that a number with the given interval is at most limit.
func verdictAtMost(interval estimate.Interval, limit float64) Verdict {
	switch {
	case interval.Lo > limit:
		return Reject
	case interval.Hi <= limit:
		return Accept
	}
	return Open
}

// verdictAtLeast returns the verdict on the condition that a number with the given interval is at least limit.
func verdictAtLeast(interval estimate.Interval, limit float64) Verdict {
	return verdictAtMost(estimate.Interval{Lo: -interval.Hi, Hi: -interval.Lo}, -limit)
}

// eigenprojector is the projector P, represented by eigenvectors. Ẑ = √c·Z is the matrix that the ladder stores. With
// ẐᵀẐ = VΣ̂²Vᵀ, the columns of W = ẐV_rΣ̂_r⁻¹ are the r eigenvectors of ZZᵀ whose eigenvalues σ̂²/c exceed θλ; they
// belong to the last r entries of Σ̂².
type eigenprojector struct {
	k          stage.Operator
	eigenForm  *precond.Woodbury // ẐẐᵀ+I in the eigen form, which multiplies by ẐV
	scale      float64           // c
	sigma2     []float64         // Σ̂², ascending
	rank       int               // r
	featureVec *mat.Dense        // scratch, s×1
	x, y       *mat.Dense        // scratch of the operators below, n×1
}

// newEigenprojector decomposes ẐᵀẐ. threshold is θλ. Eigenvalues below 64·2⁻⁵³·s·σ̂₁², a generous allowance for
// rounding, count as zero.
func newEigenprojector(ctx context.Context, k stage.Operator, l *ladder, threshold float64) (*eigenprojector,
	error) {
	eigenForm, err := l.woodbury(ctx, 1, precond.FormEigen)
	if err != nil {
		return nil, err
	}
	projector := &eigenprojector{k: k, eigenForm: eigenForm, scale: l.scale(), sigma2: eigenForm.Eigenvalues(),
		featureVec: mat.NewDense(l.zHat.D, 1, nil),
		x:          mat.NewDense(eigenForm.Dim(), 1, nil), y: mat.NewDense(eigenForm.Dim(), 1, nil)}
	s := len(projector.sigma2)
	limit := max(projector.scale*threshold, 64*0x1p-53*float64(s)*projector.sigma2[s-1])
	for _, eigenvalue := range projector.sigma2 {
		if eigenvalue > limit {
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
	if err := p.eigenForm.ZVTransMulTo(ctx, p.featureVec, src); err != nil {
		return err
	}
	s := len(p.sigma2)
	for i, eigenvalue := range p.sigma2 {
		scaled := 0.0
		if i >= s-p.rank {
			scaled = p.featureVec.At(i, 0) / eigenvalue
		}
		p.featureVec.Set(i, 0, scaled)
	}
	if err := p.eigenForm.ZVMulTo(ctx, dst, p.featureVec); err != nil {
		return err
	}
	dst.Sub(src, dst)
	return nil
}

// complementOperator is (I−P)K(I−P), of order n.
type complementOperator struct{ *eigenprojector }

// Dim returns n.
func (a *complementOperator) Dim() int { return a.eigenForm.Dim() }

// MulTo sets dst = (I−P)K(I−P)src.
func (a *complementOperator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if err := a.complement(ctx, a.x, src); err != nil { // x = (I−P)src
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
	if err := a.eigenForm.ZVMulTo(ctx, a.x, a.featureVec); err != nil { // x = ẐV_rΣ̂_r⁻²src
		return err
	}
	if err := a.k.KMulTo(ctx, a.y, a.x); err != nil {
		return err
	}
	if err := a.eigenForm.ZVTransMulTo(ctx, a.featureVec, a.y); err != nil {
		return err
	}
	for i := range a.rank {
		dst.Set(i, 0, a.scale*a.featureVec.At(offset+i, 0)/a.sigma2[offset+i])
	}
	return nil
}

// measureConditions measures both conditions for the ladder's Z. All intervals hold together with probability 1−delta.
// Condition 1 uses a third of delta, and the two ends of condition 2 use a third each. products is the number of
// products with K.
func (s *search) measureConditions(ctx context.Context, l *ladder, constants ConditionConstants, delta float64,
	stream rng.Stream) (conditions *Conditions, products int, err error) {
	start := time.Now()
	projector, err := newEigenprojector(ctx, s.problem.K, l, constants.Theta*s.problem.Lambda)
	if err != nil {
		return nil, 0, err
	}
	conditions = &Conditions{
		Rank: projector.rank, Norm: estimate.Certain(0, 0, "P = I"),
		Low: estimate.Certain(1, 0, "P = 0"), High: estimate.Certain(1, 0, "P = 0"),
	}
	if projector.rank < s.n { // condition 1
		lanczosOptions := s.lanczosOptions(1-delta/3, stream.Sub("condition 1"), func(r *lanczos.Result) lanczosState {
			return judgeNorm(r, s.problem.Error, constants.Alpha*s.problem.Lambda)
		})
		lanczosOptions.Quantity = lanczos.LargestEigenvalue
		r, err := lanczos.Run(ctx, &complementOperator{projector}, lanczosOptions)
		if err != nil {
			return nil, 0, err
		}
		conditions.Norm = scaledInterval(r.Max.Widened(s.problem.Error), 1/s.problem.Lambda)
		products += r.Steps
	}
	if projector.rank > 0 { // condition 2
		// With E = K_stored−K, ‖D^(-½)WᵀEWD^(-½)‖₂ ≤ ‖E‖₂/min σ².
		ratioError := s.problem.Error * projector.scale / projector.sigma2[len(projector.sigma2)-projector.rank]
		r, err := lanczos.Run(ctx, &rangeOperator{projector}, s.lanczosOptions(
			1-2*delta/3, stream.Sub("condition 2"),
			func(r *lanczos.Result) lanczosState { return judgeRatios(r, ratioError, constants.Gamma) }))
		if err != nil {
			return nil, 0, err
		}
		conditions.Low, conditions.High = r.Min.Widened(ratioError), r.Max.Widened(ratioError)
		products += r.Steps
	}
	conditions.Verdict1, conditions.Verdict2 = verdictAtMost(conditions.Norm, constants.Alpha),
		ratiosWithin(conditions.Low, conditions.High, constants.Gamma)
	conditions.Seconds = time.Since(start).Seconds()
	return conditions, products, nil
}

// ratiosWithin returns the verdict on condition 2, given the intervals of the smallest and largest eigenvalue.
func ratiosWithin(low, high estimate.Interval, gamma float64) Verdict {
	return conjunction(verdictAtLeast(low, 1-gamma), verdictAtMost(high, 1+gamma))
}

// scaledInterval returns the interval of factor·x for a number x with the given interval.
func scaledInterval(interval estimate.Interval, factor float64) estimate.Interval {
	interval.Value, interval.Lo, interval.Hi = factor*interval.Value, factor*interval.Lo, factor*interval.Hi
	return interval
}
