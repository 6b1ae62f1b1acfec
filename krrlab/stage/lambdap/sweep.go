package lambdap

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// matrix is K+λI, and K alone. *gram.Matrix is one.
type matrix interface {
	// Dim returns n.
	Dim() int
	// Lambda returns λ.
	Lambda() float64
	// MulTo sets dst = (K+λI)·src, and KMulTo dst = K·src, all n×k.
	MulTo(ctx context.Context, dst, src *mat.Dense) error
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Point is one λ_p of a sweep. Its intervals are no wider than η allows (Bound).
type Point struct {
	pencil.Row
	Bound   float64 `json:"bound"`             // Bound for η's upper end
	Seconds float64 `json:"seconds_predicted"` // of a solve for all right-hand sides, set-up included; 0 if unknown
}

// Sweep is what was measured of Z, n×s, for each λ_p.
type Sweep struct {
	N       int               `json:"n"`
	S       int               `json:"s"`
	Lambda  float64           `json:"lambda"`
	Eta     estimate.Interval `json:"eta"` // ‖K−ZZᵀ‖₂
	Points  []Point           `json:"points"`
	Best    int               `json:"best"` // index of the point of least predicted time; −1: none
	SetUp   float64           `json:"seconds_set_up"`
	PerIter float64           `json:"seconds_iteration"` // of all right-hand sides
	Eigen   float64           `json:"seconds_eigen"`     // of the eigendecomposition that the sweep takes
	Total   float64           `json:"seconds"`
}

// measure measures ZZᵀ+λ_pI as a preconditioner of K+λI for a grid of λ_p: η = ‖K−ZZᵀ‖₂, and
// for each λ_p an interval of κ and, with the first right-hand sides of y, n×t, the
// iterations of PCG. formed are the seconds that Z took, for the predicted times. If ctx ends
// it returns what is known by then beside ctx's error: intervals are valid, if wide, after
// any step. Work: ns² + 9s³ flops, and a product with K of as many columns as there are λ_p
// for a step or an iteration.
func measure(ctx context.Context, a matrix, z *points.Dense32, y *mat.Dense, formed float64, o *Options) (*Sweep,
	error) {
	start := time.Now()
	s := &sweep{Sweep: &Sweep{N: a.Dim(), S: z.D, Lambda: a.Lambda(), Best: -1}, a: a, z: z, y: y, formed: formed, o: o,
		set: pencil.Set{A: a, StorageError: o.kError / a.Lambda(), Tell: o.tell}}
	var err error
	for _, part := range []func(context.Context) error{s.decompose, s.eta, s.cost, s.kappas, s.solve} {
		if err == nil {
			err = part(ctx)
		}
	}
	s.finish()
	s.Total = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || len(s.Points) == 0) {
		return nil, err
	}
	return s.Sweep, err
}

// sweep is a Sweep under way.
type sweep struct {
	*Sweep
	a      matrix
	z      *points.Dense32
	y      *mat.Dense
	formed float64
	o      *Options
	w      *precond.Woodbury // in the eigen form
	set    pencil.Set        // of all λ_p
}

// decompose decomposes ZᵀZ.
func (s *sweep) decompose(ctx context.Context) (err error) {
	clock := time.Now()
	s.w, err = precond.New(ctx, s.z, s.Lambda, &precond.Options{Form: precond.FormEigen, Comm: s.o.comm})
	s.Eigen = stage.Lap(&clock)
	return err
}

// cost measures what a solve with these features costs: its set-up, at the λ_p that η says, and an iteration. The
// seconds are those of the first rank, so that all choose the same λ_p by them.
func (s *sweep) cost(ctx context.Context) error {
	_, t := s.y.Dims()
	clock := time.Now()
	m, err := precond.New(ctx, s.z, s.Lambda+s.Eta.Value, &precond.Options{RHS: t, Comm: s.o.comm})
	if err != nil {
		return err
	}
	x := []float64{s.formed + stage.Lap(&clock), 0, s.Eigen}
	for _, op := range []func(context.Context, *mat.Dense, *mat.Dense) error{s.a.MulTo, m.SolveTo} {
		each, err := pencil.Seconds(ctx, op, s.y)
		if err != nil {
			return err
		}
		x[1] += each
	}
	err = comm.ShareNumbers(ctx, s.o.comm, x, 0)
	s.SetUp, s.PerIter, s.Eigen = x[0], x[1], x[2]
	return err
}

// lanczos returns the options of a process that spends half of the failure probability.
func (s *sweep) lanczos(tol float64, part string) lanczos.Options {
	return lanczos.Options{Steps: s.o.Steps, Tol: tol, Confidence: 1 - (1-s.o.Confidence)/2, Start: s.o.stream.Sub(part)}
}

// eta brackets ‖K−ZZᵀ‖₂.
func (s *sweep) eta(ctx context.Context) error {
	o := s.lanczos(0.05, "eta")
	o.Norm, o.Monitor = true, func(r *lanczos.Result) error {
		s.o.tell(stage.Event{Stage: "eta", Done: r.Steps, Total: s.o.Steps, Remaining: -1})
		return nil
	}
	r, err := lanczos.Run(ctx, s.w.Outer().SubtractFrom(s.a), &o)
	if r != nil {
		s.Eta = r.Norm().Widened(s.o.kError)
	}
	return err
}

// kappas brackets κ for every λ_p of the grid, side by side.
func (s *sweep) kappas(ctx context.Context) error {
	grid := s.o.Grid
	if len(grid) == 0 {
		grid = gridOf(s.Lambda, s.Eta.Value, s.o.Points)
	}
	f, err := s.w.Family(grid)
	if err != nil {
		return err
	}
	s.set.M, s.Points = f, make([]Point, len(grid))
	for i, v := range grid {
		row := pencil.NewRow(fmt.Sprintf("λ_p = %.4g", v))
		row.S, row.LambdaP = s.S, v
		s.Points[i] = Point{Row: row, Bound: Bound(s.Lambda, v, s.Eta.Hi)}
		s.set.Rows = append(s.set.Rows, &s.Points[i].Row)
	}
	err = s.set.Lanczos(ctx, s.lanczos(s.o.Width, "kappa"), s.o.tol)
	for i := range s.Points {
		p := &s.Points[i]
		if p.Steps == 0 && p.Why != "" {
			return fmt.Errorf("%s: %s", p.Name, p.Why)
		}
		p.ClipByEta(s.Lambda, s.Eta.Hi)
		for _, i := range []*estimate.Interval{&p.Kappa, &p.Min, &p.Max} { // η's failure is in each
			i.Confidence = s.o.Confidence
		}
	}
	if err != nil {
		s.Points = slices.DeleteFunc(s.Points, func(p Point) bool { return p.Steps == 0 })
	}
	return err
}

// solve counts the iterations of PCG for every λ_p, side by side.
func (s *sweep) solve(ctx context.Context) error {
	if s.o.Columns == 0 {
		return nil
	}
	return s.set.Solve(ctx, s.y.Slice(0, s.N, 0, s.o.Columns).(*mat.Dense),
		pcg.Options{Tol: s.o.tol, Aim: stage.Aim, MaxIter: s.o.MaxIter})
}

// finish predicts the times and chooses the least; of equal iterations the smaller κ.
func (s *sweep) finish() {
	r := s.Sweep
	for i := range r.Points {
		p := &r.Points[i]
		its := p.Predicted
		if p.Iterations != nil {
			its = *p.Iterations
		}
		if its == 0 || p.Iterations != nil && p.Status != pcg.Converged {
			continue
		}
		p.Seconds = r.SetUp + float64(its)*r.PerIter
		if r.Best < 0 || p.Seconds < r.Points[r.Best].Seconds || p.Seconds == r.Points[r.Best].Seconds &&
			p.Kappa.Value < r.Points[r.Best].Kappa.Value {
			r.Best = i
		}
	}
}

// At returns the point of that λ_p, nil if there is none.
func (r *Sweep) At(lambdaP float64) *Point {
	for i := range r.Points {
		if r.Points[i].LambdaP == lambdaP {
			return &r.Points[i]
		}
	}
	return nil
}
