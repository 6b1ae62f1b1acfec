package precond

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Form is a representation of M⁻¹; see the package documentation.
type Form int

const (
	AutoForm  Form = iota // Linv, or U if n ≤ 2s, its Cost is lower and no correction is needed
	FormL                 // triangular solves with L
	FormLInv              // products with L⁻¹
	FormU                 // products with U = L⁻¹Zᵀ
	FormEigen             // ZᵀZ = VΣ²Vᵀ
)

var formNames = []string{"auto", "L", "Linv", "U", "eigen"}

// String returns the name of the form in options.
func (f Form) String() string { return enum.Name(formNames, f) }

// MarshalText implements encoding.TextMarshaler.
func (f Form) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Form) UnmarshalText(b []byte) (err error) {
	*f, err = enum.Parse[Form]("form", formNames, string(b))
	return err
}

// Options configures New. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// Form is the representation of M⁻¹. Default: AutoForm.
	Form Form
	// RHS is the expected number t of columns that M⁻¹ is applied to; only AutoForm uses it. Default: 1.
	RHS int
	// Fast forms ZᵀZ by float32 products of panels of rows, summed in float64, if the error E of ZᵀZ is at most λ_p/10.
	// The error is predicted first and then measured; ‖E‖₂ exceeds the measured bound with probability 1e-6. M⁻¹ is
	// then between 0.9 and 1.1 times the inverse of ZZᵀ+λ_pI, and therefore definite, as a preconditioner must be. The
	// setup takes half the time. Default: false.
	Fast bool
	// Comm is the group of ranks over which Z is distributed. Each rank has the rows of Z that comm.RowRange determines
	// in units of RankRows, its part of the factor (FactorBytes), and all rows of the n×t matrices of SolveTo. A
	// SolveTo takes one all-reduce of st integers, one all-gather of nt numbers, and two all-reduces of st numbers if
	// the factor is shared; if Corrects returns true, twice as many. All ranks must call the methods together. Default:
	// comm.Alone().
	Comm comm.Comm
}

// Seconds has the wall-clock seconds of the steps of New.
type Seconds struct {
	Gram   float64 // ZᵀZ
	Factor float64 // the Cholesky factor or eigenvalues of ZᵀZ
	Form   float64 // L⁻¹ or U
}

// correctionLimit is the ratio tr ZᵀZ/λ_p above which M⁻¹r is corrected. The relative error of rᵀM⁻¹r without the
// correction is about 1e-15 times this ratio. A smaller limit doubles the cost of M⁻¹ for more problems.
const correctionLimit = 1e10

// Woodbury is M = ZZᵀ+λ_pI with its inverse. Its methods are safe for concurrent use.
type Woodbury struct {
	n, s         int
	lambdaP      float64
	form         Form
	isAutoForm   bool             // Options.Form was AutoForm
	distribution *rowDistribution // distribution of the rows of Z
	z            *points.Dense32  // this rank's rows of Z; nil for FormU
	uT           []float64        // for FormU, this rank's rows of Uᵀ
	factor       []float64        // s×s row-major: L, L⁻¹ (lower) or V; nil for FormU, and if ranks share the factor
	linv         *linv            // L⁻¹, for FormLInv
	sigma2       []float64        // eigenvalues σ² of ZᵀZ, for FormEigen
	trace        float64          // tr ZᵀZ
	logDet       float64          // ln det(ZᵀZ+λ_pI)
	seconds      Seconds

	statOnce sync.Once
	statDim  float64 // statistical dimension s_{λ_p}

	mu   sync.Mutex
	pool []*application // unused scratch memory, guarded by mu
}

// New computes M = ZZᵀ+λ_pI for the features Z, n×s with s ≥ 1, whose rows are the rows of z. Except for FormU, the
// result refers to z, which must not change. The cost is ns² + s³/3 flops and the additional cost of the form (see
// Cost). The memory is 8s² bytes (FormU: 8ns), and temporarily about 20 MB per thread. Sums over rows are computed in
// fixed point, so M⁻¹ has the same bits for any number of threads and of ranks.
//
// New returns an error if λ_p is not positive and finite, Z has a number that is not finite, C = ZᵀZ+λ_pI is not
// positive definite in float64 (no jitter is added), or ctx ends. It panics if z has no rows or no columns.
func New(ctx context.Context, z *points.Dense32, lambdaP float64, options *Options) (*Woodbury, error) {
	w, err := newWoodbury(ctx, z, lambdaP, options)
	if err != nil {
		return nil, err
	}
	lap := stopwatch()
	var gram gramian
	if options != nil && options.Fast {
		gram, err = w.fastGram(ctx)
	} else {
		gram, err = w.gram(ctx, exactProducts)
	}
	if err != nil {
		return nil, err
	}
	w.seconds.Gram = lap()
	if err := w.syncFactor(ctx, w.finish(ctx, gram)); err != nil {
		return nil, err
	}
	return w, nil
}

// newWoodbury checks the arguments of New, and chooses the form if it is AutoForm.
func newWoodbury(ctx context.Context, z *points.Dense32, lambdaP float64, options *Options) (*Woodbury, error) {
	opt := *cmp.Or(options, &Options{})
	if opt.Form < AutoForm || opt.Form > FormEigen || opt.RHS < 0 {
		panic(fmt.Sprintf("precond: form %v, %d right-hand sides", opt.Form, opt.RHS))
	}
	if err := checkRidge(lambdaP); err != nil {
		return nil, err
	}
	distribution, err := newRowDistribution(ctx, opt.Comm, z)
	if err != nil {
		return nil, err
	}
	w := &Woodbury{n: distribution.n, s: z.D, lambdaP: lambdaP, form: opt.Form, isAutoForm: opt.Form == AutoForm, z: z,
		distribution: distribution}
	if w.isAutoForm {
		w.form = cheaperForm(w.n, w.s, cmp.Or(opt.RHS, 1))
	}
	return w, nil
}

// checkRidge returns an error unless λ_p is positive and finite.
func checkRidge(lambdaP float64) error {
	if !(lambdaP > 0) || math.IsInf(lambdaP, 1) {
		return fmt.Errorf("precond: λ_p = %v, want a positive number", lambdaP)
	}
	return nil
}

// finish computes the factor of ZᵀZ and the form of w, and sets the seconds of both steps.
func (w *Woodbury) finish(ctx context.Context, gram gramian) (err error) {
	lap := stopwatch()
	if w.trace = gram.trace; w.isAutoForm && NeedsCorrection(w.trace, w.lambdaP) {
		w.form = FormLInv // FormU cannot be corrected
	}
	if w.form == FormEigen {
		err = w.eigendecompose(ctx)
	} else {
		err = w.factorize(ctx, gram)
	}
	if err = comm.Agree(ctx, w.distribution.comm, cmp.Or(err, ctx.Err())); err != nil {
		return err
	}
	w.seconds.Factor = lap()
	switch w.form {
	case FormLInv:
		if w.factor == nil {
			err = w.invertShared(gram.DistributedMatrix)
		} else {
			err = w.invert()
		}
	case FormU:
		err = w.computeU(ctx)
	}
	w.seconds.Form = lap()
	return err
}

// stopwatch returns a function that returns the seconds since its last call.
func stopwatch() func() float64 {
	lapStart := time.Now()
	return func() float64 {
		previousStart := lapStart
		lapStart = time.Now()
		return lapStart.Sub(previousStart).Seconds()
	}
}

// Dim returns n.
func (w *Woodbury) Dim() int { return w.n }

// Features returns s, the number of columns of Z.
func (w *Woodbury) Features() int { return w.s }

// LambdaP returns λ_p.
func (w *Woodbury) LambdaP() float64 { return w.lambdaP }

// Form returns the form of M⁻¹, never AutoForm.
func (w *Woodbury) Form() Form { return w.form }

// Corrects reports whether SolveTo corrects M⁻¹r, which doubles its cost. SolveTo corrects if tr ZᵀZ > 10¹⁰·λ_p, except
// for FormU, which does not store Z.
func (w *Woodbury) Corrects() bool { return w.correctsAt(w.lambdaP) }

// correctsAt returns what Corrects would return for the given λ_p.
func (w *Woodbury) correctsAt(lambdaP float64) bool {
	return w.z != nil && NeedsCorrection(w.trace, lambdaP)
}

// NeedsCorrection reports whether M⁻¹r is corrected for a ZZᵀ of the given trace, except with FormU.
func NeedsCorrection(trace, lambdaP float64) bool { return trace > correctionLimit*lambdaP }

// Seconds returns the time that New spent on each of its steps.
func (w *Woodbury) Seconds() Seconds { return w.seconds }

// Bytes returns the memory of the preconditioner: the factor, Z, which takes 4ns bytes (or U, 8ns), and the scratch
// memory of SolveTo.
func (w *Woodbury) Bytes() int64 {
	total := 8 * int64(len(w.uT)+len(w.factor)+len(w.sigma2))
	if w.linv != nil && w.linv.hasBlock != nil {
		total += w.linv.bytes()
	}
	if w.z != nil {
		total += 4 * int64(w.z.N) * int64(w.z.D)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, unused := range w.pool {
		total += unused.bytes()
	}
	return total
}

// StatDim returns the statistical dimension of the features at λ_p (proposition 3 of the paper),
//
//	s_{λ_p}(ZZᵀ) = tr(ZZᵀ(ZZᵀ+λ_pI)⁻¹) = ‖U‖_F² = s − λ_p‖L⁻¹‖_F² = Σ_i σ_i²/(σ_i²+λ_p),
//
// 0 ≤ s_{λ_p} ≤ min(n, s). FormU and FormEigen use the second and the fourth formula, which do not cancel. FormL and
// FormLInv use the third formula, with an absolute error of about s·2⁻⁵³·√(1+σ₁²/λ_p). StatDim is free, except that its
// first call for FormL takes s³/3 flops.
func (w *Woodbury) StatDim() float64 {
	w.statOnce.Do(func() {
		if w.form == FormL {
			w.statDim = w.statDimFromL()
		}
		w.statDim = max(0, min(w.statDim, float64(min(w.n, w.s))))
	})
	return w.statDim
}

// LogDet returns ln det M = (n−s)·ln λ_p + ln det(ZᵀZ+λ_pI), for the computed ZᵀZ.
func (w *Woodbury) LogDet() float64 { return float64(w.n-w.s)*math.Log(w.lambdaP) + w.logDet }

// String returns a line with the dimensions, λ_p and form of M, and the seconds of each step of New.
func (w *Woodbury) String() string {
	return fmt.Sprintf("ZZᵀ+λ_pI, n = %d, s = %d, λ_p = %g, form %v; ZᵀZ %.3g s, factor %.3g s, form %.3g s",
		w.n, w.s, w.lambdaP, w.form, w.seconds.Gram, w.seconds.Factor, w.seconds.Form)
}

// Identity is M = I of order N, for code that requires a preconditioner.
type Identity struct{ N int }

// Dim returns N.
func (m Identity) Dim() int { return m.N }

// SolveTo sets dst = r.
func (m Identity) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, t := r.Dims()
	if dstRows, dstColumns := dst.Dims(); n != m.N || dstRows != n || dstColumns != t {
		panic(fmt.Sprintf("precond: %d×%d into %d×%d for the identity of order %d", n, t, dstRows, dstColumns, m.N))
	}
	dst.Copy(r)
	return nil
}
