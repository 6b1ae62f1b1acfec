package bound

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

// Basis is what is known of a problem before it is solved.
type Basis struct {
	// a bound of the eigenvalues of K+λI from below: λ if K is positive semi-definite; 0: none, and no error is bounded
	Lambda float64
	// Off bounds ‖E‖₂, where products are with K+E; it is predicted where K is stored.
	Off   float64
	Mu    float64   // 0 < μ ≤ λ_min(M⁻¹(K+E+λI)) for every such E; 0: none is known
	Norms []float64 // ‖y_j‖₂
	Known []float64 // ‖c_j*‖_A at least, 0: nothing; nil where iterations begin at 0
}

// fast is what M⁻¹ may be less than the inverse of FFᵀ+λ_pI (precond.Options.Fast); its rounding is far below.
const fast = 0.9

// LambdaMin returns μ for products with K that are off by at most off, rounding included: λ−off without a factor
// (nil), M = I, and 0.9·min(1, (λ−off−e)/λ_p) for M = FFᵀ+λ_pI with −eI ≼ K−FFᵀ, where 0.9 is for M⁻¹ as it is applied;
// 0 if that is not positive, which means that none is known. It is rounded down to seven bits, so that it is the same
// on machines that round differently.
func LambdaMin(f *lowrank.Factor, lambda, lambdaP, off float64) float64 {
	mu := max(0, lambda-off)
	if f != nil {
		mu = fast * f.LambdaMin(mu, lambdaP)
	}
	if !(mu > 0) {
		return 0
	}
	frac, exp := math.Frexp(mu)
	return math.Ldexp(math.Floor(frac*128)/128, exp)
}

// Errors sets dst_j to a bound of ‖e_j‖_A, given ‖r_j‖₂/‖y_j‖₂ by recurrence and the upper bound of
// pcg.Iteration.Error, nil for none: the lesser of √(1+Off/λ) times this and ‖r_j‖₂/√λ. It is for the residual by
// recurrence: the error of that, by rounding and by K as stored, is in Final.
func (b *Basis) Errors(dst, relres, upper []float64) {
	for j, y := range b.Norms {
		dst[j] = relres[j] * y / math.Sqrt(b.Lambda)
		if upper != nil {
			if v := math.Sqrt(1+b.Off/b.Lambda) * upper[j] * y; v < dst[j] { // not NaN
				dst[j] = v
			}
		}
	}
}

// relative returns the largest of ‖e_j‖_A/‖c_j*‖_A by bounds of the former, as ‖c_j*‖_A² = fallen_j‖y_j‖₂²+‖e_j‖_A²
// (pcg.Iteration.TotalDecrease) for iterations begun at 0, or by what is Known.
func (b *Basis) relative(errors, fallen []float64) (worst float64) {
	for j, e := range errors {
		if b.Norms[j] == 0 {
			continue
		}
		rel := 1.0
		if b.Known != nil { // of iterations begun elsewhere
			if b.Known[j] > 0 {
				rel = e / b.Known[j]
			}
		} else if e > 0 {
			rel = e / math.Hypot(e, math.Sqrt(fallen[j])*b.Norms[j])
		}
		worst = math.Max(worst, rel)
	}
	return worst
}

// History returns the largest bound of ‖e_j‖_A/‖c_j*‖_A after every iteration of a solve.
func (b *Basis) History(res *pcg.Result) []float64 {
	h, t := res.History, len(b.Norms)
	all, errors, fallen := make([]float64, len(h.RelRes)), make([]float64, t), make([]float64, t)
	for k, relres := range h.RelRes {
		if k > 0 && (len(h.Restarts) == 0 || k <= h.Restarts[0]) {
			for j, v := range h.Decrease[k-1] {
				fallen[j] += v
			}
		}
		var upper []float64
		if k < len(h.Error) {
			upper = h.Error[k]
		}
		b.Errors(errors, relres, upper)
		all[k] = b.relative(errors, fallen)
	}
	return all
}

// Answer is what is known of an answer C when it is there.
type Answer struct {
	C, Y *mat.Dense
	// Residuals are ‖y_j−Ac_j‖₂/‖y_j‖₂ recomputed, and Rounding what they may be off; Certain says that this is
	// proved, and that K is positive semi-definite.
	Residuals, Rounding []float64
	Certain             bool
	PCG                 *pcg.Result // of the last solve, that C is the answer of; nil for none
}

// Errors are bounds of an answer, for every column: of ‖e_j‖_A, e_j = c_j*−c_j, and of ‖c_j*‖_A.
type Errors struct {
	// Bounds are of ‖e_j‖_A: the least that is known, by the Gauss–Radau rule where Mu is known, with
	// ‖f_j‖₂/√λ added; f_j is the residual by recurrence less the one recomputed, with Rounding. That the
	// rule holds for the numbers the iteration came to, in floating point, is not proved.
	Bounds []float64 `json:"bounds"`
	// Certain are proved from the data on, whatever the iteration did: by the residual recomputed with its certain
	// rounding, ‖e_j‖_A ≤ ‖r_j‖₂/√λ, or by M where FFᵀ ≼ K is certain. Nil where the residual is not, or K is not
	// known to be positive semi-definite.
	Certain []float64 `json:"certain,omitempty"`
	// Residual are ‖r_j‖₂/√λ, with what errors r may have: at least Bounds, and twice the error of decision values at
	// points of k(x, x) = 1 (Decisions).
	Residual []float64 `json:"residual"`
	// Sizes are lower bounds of ‖c_j*‖_A, by |y_jᵀc_j| ≤ ‖c_j*‖_A·‖c_j‖_A.
	Sizes []float64 `json:"sizes"`
	// Relative is the largest of Bounds_j/Sizes_j, CertainRelative of Certain_j/Sizes_j, 0 if there are none.
	Relative        float64 `json:"relative"`
	CertainRelative float64 `json:"relative_certain,omitempty"`
	// Mu is μ ≤ λ_min(M⁻¹A), certain up to what is predicted of K as stored; 0 where none is known.
	Mu float64 `json:"mu,omitempty"`
}

// roundoff covers sums of up to 10⁷ float64 numbers.
const roundoff = 1 + 1e-8

// Final returns the bounds of an answer, nil where they are not finite.
func (b *Basis) Final(a *Answer) *Errors {
	t := len(b.Norms)
	e := &Errors{Bounds: make([]float64, t), Sizes: make([]float64, t), Mu: b.Mu}
	if a.PCG != nil && len(a.PCG.RelRes) == t && a.PCG.Gap != nil {
		var upper []float64
		if h := a.PCG.History.Error; len(h) > 0 {
			upper = h[len(h)-1]
		}
		b.Errors(e.Bounds, a.PCG.RelRes, upper)
	} else {
		e.Mu = 0
	}
	scale := roundoff / math.Sqrt(b.Lambda)
	for j, y := range b.Norms {
		direct := (a.Residuals[j] + a.Rounding[j]) * y * scale
		e.Residual = append(e.Residual, direct)
		v := math.NaN()
		if e.Mu > 0 {
			v = e.Bounds[j] + (a.PCG.Gap[j]+a.Rounding[j])*y*scale
		}
		if e.Bounds[j] = direct; v < direct { // not NaN
			e.Bounds[j] = v
		}
		if a.Certain {
			e.Certain = append(e.Certain, direct)
		}
		e.Sizes[j] = size(a.C.ColView(j), a.Y.ColView(j), y, direct*math.Sqrt(b.Lambda))
	}
	if !finite(e.Bounds) || !finite(e.Sizes) {
		return nil
	}
	e.settle()
	return e
}

// size returns a lower bound of ‖c*‖_A ≥ yᵀc/‖c‖_A, ‖c‖_A² = cᵀ(y−r) ≤ yᵀc + ‖c‖₂‖r‖₂, given ‖y‖₂ and ‖r‖₂ at most; 0
// if there is none. The product is of unit vectors, right to (n+8)u, as it may cancel.
func size(c, y mat.Vector, ynorm, rnorm float64) float64 {
	length := mat.Norm(c, 2)
	if length == 0 || ynorm == 0 {
		return 0
	}
	var by float64
	for i := range c.Len() {
		by += c.AtVec(i) / length * (y.AtVec(i) / ynorm)
	}
	off := float64(c.Len()+8) * 0x1p-53
	if by <= off {
		return 0
	}
	return (by - off) * math.Sqrt(length) * (ynorm / math.Sqrt((by+off)*ynorm+rnorm)) / roundoff
}

func finite(list []float64) bool {
	for _, v := range list {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// settle sets the relative bounds, at most 1 where nothing is known.
func (e *Errors) settle() {
	worst := func(bounds []float64) (most float64) {
		for j, v := range bounds {
			switch {
			case e.Sizes[j] > 0:
				most = math.Max(most, v/e.Sizes[j])
			case v > 0:
				most = math.Max(most, 1)
			}
		}
		return most
	}
	e.Relative, e.CertainRelative = worst(e.Bounds), worst(e.Certain)
}

// Model returns what a model keeps of the bounds: the certain ones where there are any; nil of nil.
func (e *Errors) Model() *model.Error {
	switch {
	case e == nil:
		return nil
	case e.Certain != nil:
		return &model.Error{ANorm: e.Certain, Decision: e.decisions(e.Certain), Certain: true}
	}
	return &model.Error{ANorm: e.Bounds, Decision: e.Decisions()}
}

// Decisions returns bounds of |f_j*(x)−f_j(x)|/√k(x, x), the same for every x: with k_xk_xᵀ ≼ k(x,x)·K the error is
// k_xᵀA⁻¹r_j ≤ √k(x,x)·‖e_j‖_A, and at most √k(x,x)·‖r_j‖₂/(2√λ), as κ/(κ+λ)² ≤ 1/(4λ).
func (e *Errors) Decisions() []float64 { return e.decisions(e.Bounds) }

func (e *Errors) decisions(bounds []float64) []float64 {
	d := make([]float64, len(bounds))
	for j, v := range bounds {
		d[j] = v
		if j < len(e.Residual) {
			d[j] = min(v, e.Residual[j]/2)
		}
	}
	return d
}

// metric is M with both of its products.
type metric interface {
	pcg.Preconditioner
	MulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Sharpen lowers the certain bounds by M = FFᵀ+λ_pI of a factor with FFᵀ ≼ K+eI, certain, given the residual
// R = Y−AC that they are of, off by at most rounding_j‖y_j‖₂. With any z, here M⁻¹r as it is applied, δ = r−Mz and
// θ = min(1, (λ−e)/λ_p),
//
//	‖e‖_A ≤ √(zᵀMz/θ) + ‖δ‖₂/√λ,
//
// so that the error of M⁻¹ costs no certainty. The product Mz is wrong by at most 8(n+s)u·(‖F‖_F²+λ_p)·‖z‖₂.
func (e *Errors) Sharpen(ctx context.Context, b *Basis, m pcg.Preconditioner, f *lowrank.Factor, lambdaP float64,
	r *mat.Dense, rounding []float64) error {
	w, ok := m.(metric)
	if e == nil || e.Certain == nil || !ok || f == nil || r == nil {
		return nil
	}
	theta := f.LambdaMin(b.Lambda, lambdaP)
	if theta == 0 {
		return nil
	}
	n, t := r.Dims()
	z, mz := mat.NewDense(n, t, nil), mat.NewDense(n, t, nil)
	if err := w.SolveTo(ctx, z, r); err != nil {
		return err
	}
	if err := w.MulTo(ctx, mz, z); err != nil {
		return ctx.Err() // the form keeps no Z
	}
	size := f.Trace + f.Rounding + math.Abs(f.Residual) + lambdaP
	for j, y := range b.Norms {
		length := mat.Norm(z.ColView(j), 2)
		off := 8 * float64(n+f.Rank()+64) * 0x1p-53 * size * length
		square := max(0, mat.Dot(z.ColView(j), mz.ColView(j))) + off*length
		var d mat.VecDense
		d.SubVec(r.ColView(j), mz.ColView(j))
		v := roundoff * (math.Sqrt(square/theta) + (mat.Norm(&d, 2)+off+rounding[j]*y)/math.Sqrt(b.Lambda))
		if v < e.Certain[j] { // not NaN
			e.Certain[j] = v
		}
		e.Bounds[j] = min(e.Bounds[j], e.Certain[j])
	}
	e.settle()
	return nil
}

func (e *Errors) String() string {
	text := "not certain"
	if e.Certain != nil {
		text = "certain: " + outward.UpE(e.CertainRelative, 2)
	}
	how := "‖r‖₂/√λ"
	if e.Mu > 0 {
		how = fmt.Sprintf("Gauss–Radau, λ_min(M⁻¹A) ≥ %.3g", e.Mu)
	}
	return fmt.Sprintf("‖e‖_A ≤ %s·‖c‖_A (%s), %s", outward.UpE(e.Relative, 2), how, text)
}
