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

// Problem contains the known properties of a problem before it is solved.
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
	frac, exp := math.Frexp(mu)
	return math.Ldexp(math.Floor(frac*128)/128, exp)
}

// iterateErrors sets dst_j to an upper bound of ‖e_j‖_A, where e_j = c_j*−c_j and r_j is the residual: the smaller of
// ‖r_j‖₂/√λ and √(1+ProductError/λ) times the upper bound from pcg.Iteration.ErrorBounds. relres has the recursive
// ‖r_j‖₂/‖y_j‖₂, and upper the bounds of pcg relative to ‖y_j‖₂; upper is nil if there are none. The bound is for the
// recursive residual; AnswerErrors adds the errors of that residual from rounding and from the stored K.
func (b *Problem) iterateErrors(dst, relres, upper []float64) {
	for j, y := range b.Norms {
		dst[j] = relres[j] * y / math.Sqrt(b.Lambda)
		if upper != nil {
			if v := math.Sqrt(1+b.ProductError/b.Lambda) * upper[j] * y; v < dst[j] { // false for NaN
				dst[j] = v
			}
		}
	}
}

// largestRelative returns the largest bound of ‖e_j‖_A/‖c_j*‖_A, given bounds of ‖e_j‖_A. If the iteration starts at 0,
// it uses ‖c_j*‖_A² = totalDecrease_j‖y_j‖₂²+‖e_j‖_A² (pcg.Iteration.TotalDecrease). Otherwise it uses the lower bounds
// SolutionNorms; a column without one counts as 1.
func (b *Problem) largestRelative(errors, totalDecrease []float64) (worst float64) {
	for j, e := range errors {
		if b.Norms[j] == 0 {
			continue
		}
		rel := 1.0
		if b.SolutionNorms != nil { // the iteration did not start at 0
			if b.SolutionNorms[j] > 0 {
				rel = e / b.SolutionNorms[j]
			}
		} else if e > 0 {
			rel = e / math.Hypot(e, math.Sqrt(totalDecrease[j])*b.Norms[j])
		}
		worst = math.Max(worst, rel)
	}
	return worst
}

// History returns the largest bound of ‖e_j‖_A/‖c_j*‖_A after every iteration of a solve.
func (b *Problem) History(res *pcg.Result) []float64 {
	h, t := res.History, len(b.Norms)
	relative, errors, totalDecrease := make([]float64, len(h.RelRes)), make([]float64, t), make([]float64, t)
	for k, relres := range h.RelRes {
		if k > 0 && (len(h.Restarts) == 0 || k <= h.Restarts[0]) {
			for j, v := range h.Decrease[k-1] {
				totalDecrease[j] += v
			}
		}
		var upper []float64
		if k < len(h.ErrorBounds) {
			upper = h.ErrorBounds[k]
		}
		b.iterateErrors(errors, relres, upper)
		relative[k] = b.largestRelative(errors, totalDecrease)
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
	// Relative is the largest of Bounds_j/SolutionNormBounds_j. CertainRelative is that of Certain, and 0 if there
	// are none.
	Relative        float64 `json:"relative"`
	CertainRelative float64 `json:"relative_certain,omitempty"`
	// Mu is μ ≤ λ_min(M⁻¹A), certain except for the prediction of the storage error of K; 0 if none is known.
	Mu float64 `json:"mu,omitempty"`
}

// roundoffFactor bounds the relative rounding errors of sums of up to 10⁷ float64 numbers.
const roundoffFactor = 1 + 1e-8

// AnswerErrors returns the bounds of the errors of an answer, or nil if they are not finite, for example because Lambda
// is 0.
func (b *Problem) AnswerErrors(a *Answer) *Errors {
	t := len(b.Norms)
	e := &Errors{Bounds: make([]float64, t), SolutionNormBounds: make([]float64, t), Mu: b.Mu}
	if a.PCG != nil && len(a.PCG.RelRes) == t && a.PCG.Gap != nil {
		var upper []float64
		if h := a.PCG.History.ErrorBounds; len(h) > 0 {
			upper = h[len(h)-1]
		}
		b.iterateErrors(e.Bounds, a.PCG.RelRes, upper)
	} else {
		e.Mu = 0
	}
	scale := roundoffFactor / math.Sqrt(b.Lambda)
	for j, y := range b.Norms {
		residualBound := (a.Residuals[j] + a.Rounding[j]) * y * scale
		e.Residual = append(e.Residual, residualBound)
		radauBound := math.NaN()
		if e.Mu > 0 {
			radauBound = e.Bounds[j] + (a.PCG.Gap[j]+a.Rounding[j])*y*scale
		}
		if e.Bounds[j] = residualBound; radauBound < residualBound { // false for NaN
			e.Bounds[j] = radauBound
		}
		if a.Certain {
			e.Certain = append(e.Certain, residualBound)
		}
		e.SolutionNormBounds[j] = solutionNormBound(a.C.ColView(j), a.Y.ColView(j), y,
			residualBound*math.Sqrt(b.Lambda))
	}
	if notFinite := func(v float64) bool { return v-v != 0 }; slices.ContainsFunc(e.Bounds, notFinite) ||
		slices.ContainsFunc(e.SolutionNormBounds, notFinite) {
		return nil
	}
	e.setRelative()
	return e
}

// solutionNormBound returns a lower bound of ‖c*‖_A ≥ yᵀc/‖c‖_A, where ‖c‖_A² = cᵀ(y−r) ≤ yᵀc + ‖c‖₂‖r‖₂, given ‖y‖₂
// and an upper bound of ‖r‖₂. It returns 0 if there is none. The product of the unit vectors has an error of at most
// (n+8)u, and may cancel.
func solutionNormBound(c, y mat.Vector, ynorm, rnorm float64) float64 {
	cnorm := mat.Norm(c, 2)
	if cnorm == 0 || ynorm == 0 {
		return 0
	}
	var cosine float64
	for i := range c.Len() {
		cosine += c.AtVec(i) / cnorm * (y.AtVec(i) / ynorm)
	}
	errorBound := float64(c.Len()+8) * 0x1p-53
	if cosine <= errorBound {
		return 0
	}
	return (cosine - errorBound) * math.Sqrt(cnorm) * (ynorm / math.Sqrt((cosine+errorBound)*ynorm+rnorm)) /
		roundoffFactor
}

// setRelative sets the relative bounds. If the norm of a solution has no lower bound, its relative bound is 1.
func (e *Errors) setRelative() {
	worst := func(bounds []float64) (largest float64) {
		for j, v := range bounds {
			switch {
			case e.SolutionNormBounds[j] > 0:
				largest = math.Max(largest, v/e.SolutionNormBounds[j])
			case v > 0:
				largest = math.Max(largest, 1)
			}
		}
		return largest
	}
	e.Relative, e.CertainRelative = worst(e.Bounds), worst(e.Certain)
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

// decisionBounds is Decisions with the given bounds of ‖e_j‖_A.
func (e *Errors) decisionBounds(bounds []float64) []float64 {
	d := make([]float64, len(bounds))
	for j, v := range bounds {
		d[j] = v
		if j < len(e.Residual) {
			d[j] = min(v, e.Residual[j]/2)
		}
	}
	return d
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
func (e *Errors) TightenCertain(ctx context.Context, b *Problem, m pcg.Preconditioner, f *lowrank.Factor,
	lambdaP float64, r *mat.Dense, rounding []float64) error {
	mult, ok := m.(multiplier)
	if e == nil || e.Certain == nil || !ok || f == nil || r == nil {
		return nil
	}
	theta := f.LambdaMin(b.Lambda, lambdaP)
	if theta == 0 {
		return nil
	}
	n, t := r.Dims()
	z, mz := mat.NewDense(n, t, nil), mat.NewDense(n, t, nil)
	if err := mult.SolveTo(ctx, z, r); err != nil {
		return err
	}
	if err := mult.MulTo(ctx, mz, z); err != nil {
		return ctx.Err() // this form of M does not store Z, so it cannot multiply
	}
	normBound := f.Trace + f.Rounding + math.Abs(f.Residual) + lambdaP
	for j, y := range b.Norms {
		znorm := mat.Norm(z.ColView(j), 2)
		productError := 8 * float64(n+f.Rank()+64) * 0x1p-53 * normBound * znorm
		square := max(0, mat.Dot(z.ColView(j), mz.ColView(j))) + productError*znorm
		var d mat.VecDense
		d.SubVec(r.ColView(j), mz.ColView(j))
		v := roundoffFactor * (math.Sqrt(square/theta) +
			(mat.Norm(&d, 2)+productError+rounding[j]*y)/math.Sqrt(b.Lambda))
		if v < e.Certain[j] { // false for NaN
			e.Certain[j] = v
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
