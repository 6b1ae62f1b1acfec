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

// Form says how M⁻¹ is held; see the package doc.
type Form int

const (
	AutoForm  Form = iota // Linv, or U if n ≤ 2s and it is of less Cost
	FormL                 // triangular solves with L
	FormLInv              // products with L⁻¹
	FormU                 // products with U = L⁻¹Zᵀ
	FormEigen             // ZᵀZ = VΣ²Vᵀ
)

var formNames = []string{"auto", "L", "Linv", "U", "eigen"}

func (f Form) String() string { return enum.Name(formNames, f) }

// MarshalText implements encoding.TextMarshaler.
func (f Form) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Form) UnmarshalText(b []byte) (err error) {
	*f, err = enum.Parse[Form]("form", formNames, string(b))
	return err
}

// Options of New. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// Form of the inverse. Default AutoForm.
	Form Form
	// RHS is the number t of columns it is applied to, for AutoForm. Default 1.
	RHS int
	// Fast forms ZᵀZ by float32 products of panels of rows, summed in float64, where the
	// error E of that is at most λ_p/10: it is predicted, and then measured on what was
	// formed, with a probability of 1e-6 that ‖E‖₂ is above what is measured. M⁻¹ is then
	// between 0.9 and 1.1 times that of ZZᵀ+λ_pI, so definite, which a preconditioner must
	// be, and takes half the time to set up. Default false.
	Fast bool
	// Comm is the group of ranks that Z is dealt to: each has the rows that comm.Rows deals
	// it in units of RankRows, its part of the factor (FactorBytes), and the n×t matrices that
	// SolveTo takes, which gives them back to all: one all-reduce of st integers, one all-gather of
	// nt numbers, and two all-reduces of st where the factor is shared. All ranks call the methods together.
	// Default: comm.Alone().
	Comm comm.Comm
}

// Seconds that New spent.
type Seconds struct {
	Gram   float64 // on ZᵀZ
	Factor float64 // on its Cholesky factor or eigenvalues
	Form   float64 // on L⁻¹ or U
}

// Woodbury is M = ZZᵀ+λ_pI with its inverse. Its methods may be called by several
// goroutines at once; each SolveTo under way has its own scratch.
type Woodbury struct {
	n, s    int
	lambdaP float64
	form    Form
	rows    *rows // of Z that are here
	z       *points.Dense32
	u       []float64 // Uᵀ instead of z, for FormU
	factor  []float64 // s×s row-major: L, L⁻¹ (lower) or V; nil for FormU, and where ranks share
	linv    *linv     // L⁻¹
	sigma2  []float64 // eigenvalues σ² of ZᵀZ, for FormEigen
	logDet  float64   // of ZᵀZ+λ_pI
	seconds Seconds

	statOnce sync.Once
	stat     float64

	mu   sync.Mutex
	idle []*solve // scratch of solves that are over
}

// New factors M = ZZᵀ+λ_pI, with the features Z, n×s, in the rows of z, any s ≥ 1. z is
// kept (but for FormU) and must not change. Work: ns² + s³/3 flops, and what the form
// adds (see Cost); memory: 8s² bytes (FormU: 8ns), and some 20 MB a thread on the way. Sums over
// rows are taken in fixed point, so that M⁻¹ has the same bits for any number of threads and of
// ranks.
//
// It returns an error if λ_p is not positive and finite, Z has a number that is not
// finite, C = ZᵀZ+λ_pI is not positive definite in float64 (no jitter is
// added), or ctx ends. It panics if z has no rows or no columns.
func New(ctx context.Context, z *points.Dense32, lambdaP float64, o *Options) (*Woodbury, error) {
	w, err := begin(ctx, z, lambdaP, o)
	if err != nil {
		return nil, err
	}
	lap := stopwatch()
	c, err := w.gram(ctx, o != nil && o.Fast)
	if err != nil {
		return nil, err
	}
	w.seconds.Gram = lap()
	if err := w.agree(ctx, w.finish(ctx, c)); err != nil {
		return nil, err
	}
	return w, nil
}

// begin checks the arguments of New and settles the form.
func begin(ctx context.Context, z *points.Dense32, lambdaP float64, o *Options) (*Woodbury, error) {
	opt := *cmp.Or(o, &Options{})
	if opt.Form < AutoForm || opt.Form > FormEigen || opt.RHS < 0 {
		panic(fmt.Sprintf("precond: form %v, %d right-hand sides", opt.Form, opt.RHS))
	}
	if err := positive(lambdaP); err != nil {
		return nil, err
	}
	k, err := newRows(ctx, opt.Comm, z)
	if err != nil {
		return nil, err
	}
	w := &Woodbury{n: k.n, s: z.D, lambdaP: lambdaP, form: opt.Form, z: z, rows: k}
	if w.form == AutoForm {
		w.form = choose(w.n, w.s, cmp.Or(opt.RHS, 1))
	}
	return w, nil
}

func positive(lambdaP float64) error {
	if !(lambdaP > 0) || math.IsInf(lambdaP, 1) {
		return fmt.Errorf("precond: λ_p = %v, want a positive number", lambdaP)
	}
	return nil
}

// finish turns ZᵀZ into the form.
func (w *Woodbury) finish(ctx context.Context, c gramian) (err error) {
	lap := stopwatch()
	if w.form == FormEigen {
		err = w.eigen()
	} else {
		err = w.factorize(ctx, c)
	}
	if err = comm.Agree(ctx, w.rows.comm, cmp.Or(err, ctx.Err())); err != nil {
		return err
	}
	w.seconds.Factor = lap()
	switch w.form {
	case FormLInv:
		if w.factor == nil {
			err = w.invertDealt(c.Dealt)
		} else {
			err = w.invert()
		}
	case FormU:
		err = w.project(ctx)
	}
	w.seconds.Form = lap()
	return err
}

// stopwatch returns a function that returns the seconds since its last call.
func stopwatch() func() float64 {
	clock := time.Now()
	return func() float64 {
		before := clock
		clock = time.Now()
		return clock.Sub(before).Seconds()
	}
}

// Dim returns n.
func (w *Woodbury) Dim() int { return w.n }

// Features returns s.
func (w *Woodbury) Features() int { return w.s }

// LambdaP returns λ_p.
func (w *Woodbury) LambdaP() float64 { return w.lambdaP }

// Form returns the form in use, never AutoForm.
func (w *Woodbury) Form() Form { return w.form }

// Seconds returns what New spent on each stage.
func (w *Woodbury) Seconds() Seconds { return w.seconds }

// Bytes returns the memory that the preconditioner keeps alive: the factor, Z, 4ns
// bytes (or U, 8ns), and the scratch of SolveTo.
func (w *Woodbury) Bytes() int64 {
	b := 8 * int64(len(w.u)+len(w.factor)+len(w.sigma2))
	if w.linv != nil && w.linv.has != nil {
		b += w.linv.bytes()
	}
	if w.z != nil {
		b += 4 * int64(w.z.N) * int64(w.z.D)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.idle {
		b += s.bytes()
	}
	return b
}

// StatDim returns the statistical dimension of the features at λ_p, proposition 3 of
// the paper,
//
//	s_{λ_p}(ZZᵀ) = tr(ZZᵀ(ZZᵀ+λ_pI)⁻¹) = ‖U‖_F² = s − λ_p‖L⁻¹‖_F² = Σ_i σ_i²/(σ_i²+λ_p),
//
// 0 ≤ s_{λ_p} ≤ min(n, s). FormU and FormEigen take the sums that do not cancel; FormL
// and FormLInv the third, whose error is about s·2⁻⁵³·√(1+σ₁²/λ_p), absolute. It is free but for FormL,
// where the first call takes s³/3 flops.
func (w *Woodbury) StatDim() float64 {
	w.statOnce.Do(func() {
		if w.form == FormL {
			w.stat = w.statL()
		}
		w.stat = max(0, min(w.stat, float64(min(w.n, w.s))))
	})
	return w.stat
}

// LogDet returns ln det M = (n−s)·ln λ_p + ln det(ZᵀZ+λ_pI), by ZᵀZ as it was formed.
func (w *Woodbury) LogDet() float64 { return float64(w.n-w.s)*math.Log(w.lambdaP) + w.logDet }

func (w *Woodbury) String() string {
	return fmt.Sprintf("ZZᵀ+λ_pI, n = %d, s = %d, λ_p = %g, form %v; ZᵀZ %.3g s, factor %.3g s, form %.3g s",
		w.n, w.s, w.lambdaP, w.form, w.seconds.Gram, w.seconds.Factor, w.seconds.Form)
}

// Identity is M = I of order N: no preconditioner, where one must be given.
type Identity struct{ N int }

// Dim returns N.
func (m Identity) Dim() int { return m.N }

// SolveTo sets dst = r.
func (m Identity) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, t := r.Dims()
	if dn, dt := dst.Dims(); n != m.N || dn != n || dt != t {
		panic(fmt.Sprintf("precond: %d×%d into %d×%d for the identity of order %d", n, t, dn, dt, m.N))
	}
	dst.Copy(r)
	return nil
}
