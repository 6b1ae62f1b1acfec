package multilevel

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// matrix is A = K+λI; *gram.Matrix is one.
type matrix interface {
	// Dim returns n.
	Dim() int
	// MulTo sets dst = (K+λI)·src for n×t matrices.
	MulTo(ctx context.Context, dst, src *mat.Dense) error
	// Lambda returns λ.
	Lambda() float64
	// KMulTo sets dst = K·src.
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}

// problem is (K+λI)C = Y with the ridge λ_p > 0 of its preconditioners.
type problem struct {
	A       matrix
	X       points.Points
	Y       *mat.Dense // n×t
	LambdaP float64
	Error   float64   // e ≥ ‖K_stored−K‖₂ of the K that A holds; the intervals are of K and allow for it
	Comm    comm.Comm // the ranks that share K and the rows of Z; all have X and Y, and call measure together
}

// Seconds that the parts took.
type Seconds struct {
	Form   float64 `json:"form"`   // of Z, all levels before it included
	Factor float64 `json:"factor"` // of M's set-up
	Solve  float64 `json:"solve"`
	Error  float64 `json:"error"` // of ‖ZZᵀ−K‖₂
	Kappa  float64 `json:"kappa"` // of κ
}

// fit returns those of a fit.
func (s *Seconds) fit() float64 { return s.Form + s.Factor + s.Solve }

// Measured is what was measured of one Z.
type Measured struct {
	Error estimate.Interval `json:"error"`          // ‖ZZᵀ−K‖₂
	Left  string            `json:"left,omitempty"` // why M was not made
	// Indefinite says that K+λI as stored has a negative eigenvalue, which proves its error to be above
	// λ, whatever problem.Error says: then nothing is known of κ.
	Indefinite bool `json:"stored_indefinite,omitempty"`
	// What follows is nil or zero where M was not made.
	Form         string             `json:"precond_form,omitempty"` // of M⁻¹: a form of package precond
	Kappa        *estimate.Interval `json:"kappa"`                  // κ(M⁻¹A)
	Iterations   int                `json:"iterations"`             // of PCG
	Status       pcg.Status         `json:"status,omitempty"`       // how it ended
	Converged    bool               `json:"converged"`
	TrueResidual float64            `json:"true_residual"` // largest ‖y_j−Ac_j‖₂/‖y_j‖₂, against K as stored
	Seconds      Seconds            `json:"seconds"`
}

// metric is M with what the Lanczos process and PCG ask of it.
type metric interface {
	lanczos.Metric
	pcg.Preconditioner
}

// measure maps the points by m and measures Z. Random numbers of the Lanczos processes come from
// g. If ctx ends it returns ctx's error and no Level. It returns an error if a feature or a
// product is not finite, or M not positive definite.
func measure(ctx context.Context, p *problem, m feature.Map, g rng.Stream, o *Options) (*Measured, error) {
	opt := o.settled()
	_, s := m.Dims()
	n := p.A.Dim()
	l := &Measured{}
	work := float64(s) * float64(s) * (float64(n) + float64(s)/3)
	need := 24 * int64(s) * int64(s) // ZᵀZ, its factor and its inverse
	switch {
	case opt.memory > 0 && p.bytes(s)+need > opt.memory:
		l.Left = fmt.Sprintf("it would take %.3g GB beside Z", float64(need)/1e9)
	case work > opt.Work:
		l.Left = fmt.Sprintf("its set-up would take %.2g flops", work)
	}
	clock := time.Now()
	z, err := form(ctx, m, p, func(done, total int) { opt.progress("", "features", done, total) })
	if err != nil {
		return nil, err
	}
	l.Seconds.Form = stage.Lap(&clock)
	if err := l.measureError(ctx, p, z, g, &opt); err != nil {
		return nil, err
	}
	l.Seconds.Error = stage.Lap(&clock)
	if l.Left != "" {
		return l, nil
	}
	opt.progress("", "factor", 0, 0)
	inverse, err := l.prepare(ctx, p, z)
	if err != nil {
		return nil, err
	}
	l.Seconds.Factor = stage.Lap(&clock)
	if err := l.measureKappa(ctx, p, inverse, g, &opt); err != nil {
		return nil, err
	}
	l.Seconds.Kappa = stage.Lap(&clock)
	if err := l.solve(ctx, p, inverse, s, &opt); err != nil {
		return nil, err
	}
	l.Seconds.Solve = stage.Lap(&clock)
	return l, nil
}

// form maps the points of this rank.
func form(ctx context.Context, m feature.Map, p *problem, progress func(done, total int)) (*points.Dense32, error) {
	n, _ := p.X.Dims()
	z, err := feature.Matrix(ctx, m, p.X.Slice(comm.Rows(n, precond.RankRows, p.Comm.Rank(), p.Comm.Size())), progress)
	return z, comm.Agree(ctx, p.Comm, err)
}

// bytes returns those of the rows of Z that a rank has, at most.
func (p *problem) bytes(s int) int64 {
	n, unit := p.A.Dim(), precond.RankRows*p.Comm.Size()
	return 4 * int64(min(n, (n+unit-1)/unit*precond.RankRows)) * int64(s)
}

// half returns the confidence of each of two statements that hold together with confidence c.
func half(c float64) float64 { return (1 + c) / 2 }

// measureError sets ‖ZZᵀ−K‖₂, for K and not as it is stored.
func (l *Measured) measureError(ctx context.Context, p *problem, z *points.Dense32, g rng.Stream,
	o *Options) error {
	outer, err := precond.NewOuter(ctx, p.Comm, z)
	if err != nil {
		return err
	}
	res, err := lanczos.Run(ctx, outer.SubtractFrom(p.A), &lanczos.Options{
		Steps: o.steps, Tol: o.width, Confidence: half(o.Confidence), Norm: true, Start: g.Sub("error"),
		Monitor: func(r *lanczos.Result) error { o.progress("", "error", r.Steps, 0); return nil },
	})
	if err != nil {
		return err
	}
	l.Error = res.Norm().Widened(p.Error)
	return nil
}

// prepare sets up M.
func (l *Measured) prepare(ctx context.Context, p *problem, z *points.Dense32) (metric, error) {
	_, t := p.Y.Dims()
	o := &precond.Options{RHS: t, Form: precond.FormLInv, Comm: p.Comm} // not Fast: what is measured is M
	if n := p.A.Dim(); precond.Cost(precond.FormL, n, z.D, t, 100) < precond.Cost(precond.FormLInv, n, z.D, t, 100) {
		o.Form = precond.FormL
	}
	w, err := precond.New(ctx, z, p.LambdaP, o)
	if err != nil {
		return nil, err
	}
	l.Form = w.Form().String()
	return w, nil
}

// measureKappa sets κ(M⁻¹A), A = K+λI with K and not as it is stored. Where the process leaves λ_min open, the error
// bounds it: with η ≥ ‖ZZᵀ−K‖₂,
//
//	M ≼ K+(η+λ_p)I ≼ max(1, (η+λ_p)/λ)·A,  so  λ_min(M⁻¹A) ≥ 1/max(1, (η+λ_p)/λ).
func (l *Measured) measureKappa(ctx context.Context, p *problem, m metric, g rng.Stream, o *Options) error {
	res, err := lanczos.RunPencil(ctx, p.A, m, &lanczos.Options{
		Steps: o.steps, Tol: o.width, Confidence: half(o.Confidence), Start: g.Sub("kappa"),
		Monitor: func(r *lanczos.Result) error { o.progress("", "kappa", r.Steps, 0); return nil },
	})
	if err != nil {
		return err
	}
	kappa, _, most := res.Allowing(p.Error / p.A.Lambda())
	l.Kappa, l.Indefinite = &kappa, res.Indefinite()
	if hi := most.Hi * max(1, (l.Error.Hi+p.LambdaP)/p.A.Lambda()); hi < l.Kappa.Hi {
		l.Kappa.Hi = max(hi, l.Kappa.Lo)
	}
	l.Kappa.Confidence = o.Confidence
	return nil
}

// solve runs PCG from C = 0.
func (l *Measured) solve(ctx context.Context, p *problem, m metric, s int, o *Options) error {
	res, err := pcg.Solve(ctx, p.A, m, p.Y, &pcg.Options{
		Tol: o.tol, Aim: stage.Aim, MaxIter: o.maxIter,
		Monitor: func(it *pcg.Iteration) error { o.progress("", "solve", it.Index, 0); return nil },
	})
	if err != nil {
		return err
	}
	l.Iterations, l.Status, l.Converged = res.Iterations, res.Status, res.Status == pcg.Converged
	l.TrueResidual = res.MaxTrueRelRes()
	if math.IsNaN(l.TrueResidual) {
		return fmt.Errorf("multilevel: the solve with s = %d broke down: %v", s, res.Status)
	}
	return nil
}
