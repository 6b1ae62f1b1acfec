package bound

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

// Problem contains the known properties of a linear system (K+λI)C = Y before its solution.
type Problem struct {
	// Lambda is a lower bound of the eigenvalues of A = K+λI: λ if K is positive semi-definite, and 0 if none is known.
	// With 0, no error is bounded.
	Lambda float64
	// ProductError bounds ‖E‖₂ if products are with K+E; it is a prediction if K is stored.
	ProductError float64
	// Mu is μ with 0 < μ ≤ λ_min(M⁻¹(K+E+λI)) for every such E and the preconditioner M; 0 if none is known.
	Mu    float64
	Norms []float64 // ‖y_j‖₂ of the right-hand sides
	// SolutionNorms are lower bounds of ‖c_j*‖_A of the solutions c_j*, 0 if unknown; nil if the iteration starts at 0.
	SolutionNorms []float64
}

// fastInverseFactor is a lower bound for the ratio of the applied M⁻¹ to the inverse of FFᵀ+λ_pI with
// precond.Options.Fast. Rounding errors change the ratio by much less.
const fastInverseFactor = 0.9

// LambdaMin returns μ for products with K that have an error of norm at most errorNorm, including rounding. Without a
// factor (nil), M = I and μ = λ−errorNorm. For M = FFᵀ+λ_pI, let e = f.Rounding, for which −eI ≼ K−FFᵀ. Then μ is
// 0.9·min(1, (λ−errorNorm−e)/λ_p), where the factor 0.9 allows for errors in applying M⁻¹. The result is 0, which means
// unknown, if that is not positive or f is not Certain. It is rounded down to seven bits, so that it does not depend on
// the rounding of the machine.
func LambdaMin(f *lowrank.Factor, lambda, lambdaP, errorNorm float64) float64 {
	mu := max(0, lambda-errorNorm)
	if f != nil {
		mu = fastInverseFactor * f.LambdaMin(mu, lambdaP)
	}
	if !(mu > 0) {
		return 0
	}
	mantissa, exponent := math.Frexp(mu)
	return math.Ldexp(math.Floor(mantissa*128)/128, exponent)
}

// iterateErrors sets dst_j to an upper bound of ‖e_j‖_A, where e_j = c_j*−c_j and r_j is the residual: the smaller of
// ‖r_j‖₂/√λ and √(1+ProductError/λ) times the upper bound from pcg.Iteration.ErrorBounds. relRes has the recursive
// ‖r_j‖₂/‖y_j‖₂, and upper the bounds of pcg relative to ‖y_j‖₂; upper is nil if there are none. The bound is for the
// recursive residual; AnswerErrors adds the errors that the residual has from rounding and from the stored K.
func (p *Problem) iterateErrors(dst, relRes, upper []float64) {
	for j, yNorm := range p.Norms {
		dst[j] = relRes[j] * yNorm / math.Sqrt(p.Lambda)
		if upper != nil {
			// The condition is false for NaN.
			if radauBound := math.Sqrt(1+p.ProductError/p.Lambda) * upper[j] * yNorm; radauBound < dst[j] {
				dst[j] = radauBound
			}
		}
	}
}

// largestRelative returns the largest bound of ‖e_j‖_A/‖c_j*‖_A, given bounds of ‖e_j‖_A. If the iteration starts at 0,
// it uses ‖c_j*‖_A² = totalDecrease_j‖y_j‖₂²+‖e_j‖_A² (pcg.Iteration.TotalDecrease). Otherwise it uses the lower bounds
// SolutionNorms; a column without one counts as 1.
func (p *Problem) largestRelative(errorBounds, totalDecrease []float64) (worst float64) {
	for j, errorBound := range errorBounds {
		if p.Norms[j] == 0 {
			continue
		}
		relative := 1.0
		if p.SolutionNorms != nil { // the iteration did not start at 0
			if p.SolutionNorms[j] > 0 {
				relative = errorBound / p.SolutionNorms[j]
			}
		} else if errorBound > 0 {
			relative = errorBound / math.Hypot(errorBound, math.Sqrt(totalDecrease[j])*p.Norms[j])
		}
		worst = math.Max(worst, relative)
	}
	return worst
}

// History returns the largest bound of ‖e_j‖_A/‖c_j*‖_A after every iteration of a solve.
func (p *Problem) History(res *pcg.Result) []float64 {
	history, t := res.History, len(p.Norms)
	relative, errorBounds, totalDecrease := make([]float64, len(history.RelRes)), make([]float64, t), make([]float64, t)
	for k, relRes := range history.RelRes {
		if k > 0 && (len(history.Restarts) == 0 || k <= history.Restarts[0]) {
			for j, decrease := range history.Decrease[k-1] {
				totalDecrease[j] += decrease
			}
		}
		var upper []float64
		if k < len(history.ErrorBounds) {
			upper = history.ErrorBounds[k]
		}
		p.iterateErrors(errorBounds, relRes, upper)
		relative[k] = p.largestRelative(errorBounds, totalDecrease)
	}
	return relative
}

// Answer is an answer C together with its residuals.
type Answer struct {
	C, Y *mat.Dense
	// Residuals are the true residuals ‖y_j−Ac_j‖₂/‖y_j‖₂, and Rounding bounds their errors. Certain states that
	// Rounding is proved and that K is positive semi-definite.
	Residuals, Rounding []float64
	Certain             bool
	PCG                 *pcg.Result // result of the last solve, with answer C; nil for none
}

// Errors contains, for every column, bounds of ‖e_j‖_A, e_j = c_j*−c_j, and of ‖c_j*‖_A.
type Errors struct {
	// Bounds are the smallest known bounds of ‖e_j‖_A. They use the Gauss–Radau rule if Mu is known, plus ‖g_j‖₂/√λ,
	// where g_j is the difference of the recursive and the true residual, with Rounding. It is not proved that the rule
	// holds in floating point for the numbers that the iteration computed.
	Bounds []float64 `json:"bounds"`
	// Certain are bounds of ‖e_j‖_A that are proved from the data, whatever the iteration did: ‖e_j‖_A ≤ ‖r_j‖₂/√λ by
	// the true residual with its certain rounding error, or a bound from M if FFᵀ ≼ K is certain. Nil if the residual
	// is not certain, or K is not known to be positive semi-definite.
	Certain []float64 `json:"certain,omitempty"`
	// Residual are the bounds ‖r_j‖₂/√λ, including the possible errors of r; Bounds are at most these. Half of them
	// bounds the error of decision values at points with k(x, x) = 1 (see Decisions).
	Residual []float64 `json:"residual"`
	// SolutionNormBounds are lower bounds of ‖c_j*‖_A, from |y_jᵀc_j| ≤ ‖c_j*‖_A·‖c_j‖_A; 0 if none is known.
	SolutionNormBounds []float64 `json:"sizes"`
	// Relative is the largest of Bounds_j/SolutionNormBounds_j. CertainRelative is the same for Certain instead
	// of Bounds, and 0 if there are none.
	Relative        float64 `json:"relative"`
	CertainRelative float64 `json:"relative_certain,omitempty"`
	// Mu is μ ≤ λ_min(M⁻¹A), certain except for the prediction of the storage error of K; 0 if none is known.
	Mu float64 `json:"mu,omitempty"`
}

// roundoffFactor bounds the relative rounding errors of sums of up to 10⁷ float64 numbers.
const roundoffFactor = 1 + 1e-8

// AnswerErrors returns the bounds of the errors of an answer, or nil if they are not finite, for example because Lambda
// is 0.
func (p *Problem) AnswerErrors(a *Answer) *Errors {
	t := len(p.Norms)
	e := &Errors{Bounds: make([]float64, t), SolutionNormBounds: make([]float64, t), Mu: p.Mu}
	if a.PCG != nil && len(a.PCG.RelRes) == t && a.PCG.Gap != nil {
		var upper []float64
		if history := a.PCG.History.ErrorBounds; len(history) > 0 {
			upper = history[len(history)-1]
		}
		p.iterateErrors(e.Bounds, a.PCG.RelRes, upper)
	} else {
		e.Mu = 0
	}
	scale := roundoffFactor / math.Sqrt(p.Lambda)
	for j, yNorm := range p.Norms {
		residualBound := (a.Residuals[j] + a.Rounding[j]) * yNorm * scale
		e.Residual = append(e.Residual, residualBound)
		radauBound := math.NaN()
		if e.Mu > 0 {
			radauBound = e.Bounds[j] + (a.PCG.Gap[j]+a.Rounding[j])*yNorm*scale
		}
		if e.Bounds[j] = residualBound; radauBound < residualBound { // false for NaN
			e.Bounds[j] = radauBound
		}
		if a.Certain {
			e.Certain = append(e.Certain, residualBound)
		}
		e.SolutionNormBounds[j] = solutionNormBound(a.C.ColView(j), a.Y.ColView(j), yNorm,
			residualBound*math.Sqrt(p.Lambda))
	}
	if notFinite := func(v float64) bool { return v-v != 0 }; slices.ContainsFunc(e.Bounds, notFinite) ||
		slices.ContainsFunc(e.SolutionNormBounds, notFinite) {
		return nil
	}
	e.setRelative()
	return e
}

// solutionNormBound returns a lower bound of ‖c*‖_A ≥ yᵀc/‖c‖_A, where ‖c‖_A² = cᵀ(y−r) ≤ yᵀc + ‖c‖₂‖r‖₂, given ‖y‖₂
// and an upper bound of ‖r‖₂. It returns 0 if rounding errors leave no positive bound. The product of the unit vectors
// has an error of at most (n+8)u, and may cancel.
func solutionNormBound(c, y mat.Vector, yNorm, rNorm float64) float64 {
	cNorm := mat.Norm(c, 2)
	if cNorm == 0 || yNorm == 0 {
		return 0
	}
	var cosine float64
	for i := range c.Len() {
		cosine += c.AtVec(i) / cNorm * (y.AtVec(i) / yNorm)
	}
	errorBound := float64(c.Len()+8) * 0x1p-53
	if cosine <= errorBound {
		return 0
	}
	return (cosine - errorBound) * math.Sqrt(cNorm) * (yNorm / math.Sqrt((cosine+errorBound)*yNorm+rNorm)) /
		roundoffFactor
}

// setRelative sets the relative bounds. If the norm of a solution has no lower bound, its relative bound is 1.
func (e *Errors) setRelative() {
	largestRatio := func(bounds []float64) (largest float64) {
		for j, errorBound := range bounds {
			switch {
			case e.SolutionNormBounds[j] > 0:
				largest = math.Max(largest, errorBound/e.SolutionNormBounds[j])
			case errorBound > 0:
				largest = math.Max(largest, 1)
			}
		}
		return largest
	}
	e.Relative, e.CertainRelative = largestRatio(e.Bounds), largestRatio(e.Certain)
}

// ForModel returns the bounds to store in a model: the certain ones if there are any. It returns nil for nil.
func (e *Errors) ForModel() *model.ErrorBounds {
	switch {
	case e == nil:
		return nil
	case e.Certain != nil:
		return &model.ErrorBounds{ANorm: e.Certain, Decision: e.decisionBounds(e.Certain), Certain: true}
	}
	return &model.ErrorBounds{ANorm: e.Bounds, Decision: e.Decisions()}
}

// Decisions returns bounds of |f_j*(x)−f_j(x)|/√k(x, x) that do not depend on x. With k_xk_xᵀ ≼ k(x,x)·K, the error
// k_xᵀA⁻¹r_j is at most √k(x,x)·‖e_j‖_A, and at most √k(x,x)·‖r_j‖₂/(2√λ), because κ/(κ+λ)² ≤ 1/(4λ).
func (e *Errors) Decisions() []float64 { return e.decisionBounds(e.Bounds) }

// decisionBounds returns the bounds of Decisions, given bounds of ‖e_j‖_A.
func (e *Errors) decisionBounds(bounds []float64) []float64 {
	decisions := make([]float64, len(bounds))
	for j, bound := range bounds {
		decisions[j] = bound
		if j < len(e.Residual) {
			decisions[j] = min(bound, e.Residual[j]/2)
		}
	}
	return decisions
}

// multiplier is a preconditioner that can also multiply by M.
type multiplier interface {
	pcg.Preconditioner
	MulTo(ctx context.Context, dst, src *mat.Dense) error
}

// TightenCertain lowers the certain bounds by means of M = FFᵀ+λ_pI, for a factor F, n×s, for which it is proved that
// FFᵀ ≼ K+ηI with η = f.Rounding. R = Y−AC is the residual that the bounds are computed from, with an error of at most
// rounding_j‖y_j‖₂. For any z, here the computed M⁻¹r, with δ = r−Mz and θ = min(1, (λ−η)/λ_p),
//
//	‖c*−c‖_A ≤ √(zᵀMz/θ) + ‖δ‖₂/√λ.
//
// The bound is therefore proved in spite of the error of M⁻¹. The product Mz has an error of at most
// 8(n+s+64)u·(‖F‖_F²+λ_p)·‖z‖₂, where ‖F‖_F² ≤ tr K + η + |f.Residual|. If ctx ends, TightenCertain returns its error.
// It changes nothing if the products with M are not available.
func (e *Errors) TightenCertain(ctx context.Context, p *Problem, m pcg.Preconditioner, f *lowrank.Factor,
	lambdaP float64, r *mat.Dense, rounding []float64) error {
	mMultiplier, ok := m.(multiplier)
	if e == nil || e.Certain == nil || !ok || f == nil || r == nil {
		return nil
	}
	theta := f.LambdaMin(p.Lambda, lambdaP)
	if theta == 0 {
		return nil
	}
	n, t := r.Dims()
	z, mz := mat.NewDense(n, t, nil), mat.NewDense(n, t, nil)
	if err := mMultiplier.SolveTo(ctx, z, r); err != nil {
		return err
	}
	if err := mMultiplier.MulTo(ctx, mz, z); err != nil {
		return ctx.Err() // this form of M does not store Z, so it cannot multiply
	}
	normBound := f.Trace + f.Rounding + math.Abs(f.Residual) + lambdaP
	for j, yNorm := range p.Norms {
		zNorm := mat.Norm(z.ColView(j), 2)
		productError := 8 * float64(n+f.Rank()+64) * 0x1p-53 * normBound * zNorm
		zMzBound := max(0, mat.Dot(z.ColView(j), mz.ColView(j))) + productError*zNorm
		var delta mat.VecDense
		delta.SubVec(r.ColView(j), mz.ColView(j))
		tightened := roundoffFactor * (math.Sqrt(zMzBound/theta) +
			(mat.Norm(&delta, 2)+productError+rounding[j]*yNorm)/math.Sqrt(p.Lambda))
		if tightened < e.Certain[j] { // false for NaN
			e.Certain[j] = tightened
		}
		e.Bounds[j] = min(e.Bounds[j], e.Certain[j])
	}
	e.setRelative()
	return nil
}

// String describes the relative bound, its method, and the certain bound in one line.
func (e *Errors) String() string {
	certainty := "not certain"
	if e.Certain != nil {
		certainty = "certain: " + outward.UpE(e.CertainRelative, 2)
	}
	method := "‖r‖₂/√λ"
	if e.Mu > 0 {
		method = fmt.Sprintf("Gauss–Radau, λ_min(M⁻¹A) ≥ %.3g", e.Mu)
	}
	return fmt.Sprintf("‖e‖_A ≤ %s·‖c‖_A (%s), %s", outward.UpE(e.Relative, 2), method, certainty)
}
