package tune

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// aim is the share of τ that PCG aims at, so that rounding does not cost a restart.
const aim = 0.97

// Matrix is K+λI, and K alone. *gram.Matrix is one.
type Matrix interface {
	// Dim returns n.
	Dim() int
	// Lambda returns λ.
	Lambda() float64
	// MulTo sets dst = (K+λI)·src, and KMulTo dst = K·src, all n×k.
	MulTo(ctx context.Context, dst, src *mat.Dense) error
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Options of Sweep. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// LambdaP is the grid. Default: Grid(λ, η, Points).
	LambdaP []float64
	// Points is the number of λ_p of the default grid, marks aside. Default 13.
	Points int
	// Confidence of κ's interval at each λ_p, in (0, 1). Half of what is left is spent on η.
	// Default 0.95.
	Confidence float64
	// Width is the relative width of κ's interval at which its process stops. Default 0.3.
	Width float64
	// Steps is the most steps of Lanczos, for κ and for η; 16nk bytes are held for each λ_p
	// and k steps. Default 150.
	Steps int
	// Columns is the number of right-hand sides that iterations are counted with, the first
	// of Y; negative means none. Default 1.
	Columns int
	// Tol is τ, and MaxIter where counting ends. Defaults 1e-3 and 200.
	Tol     float64
	MaxIter int
	// KError bounds ‖K_stored−K‖₂, for which the intervals are widened. Default 0.
	KError float64
	// Comm is the group of ranks that have the rows of Z, as of precond.NewOnRanks, and share K.
	// Default nil, no ranks.
	Comm comm.Comm
	// Stream is where starts are drawn from.
	Stream rng.Stream
	// Progress, if not nil, is called with "eta", "lanczos" or "solve" as these go on.
	Progress func(part string, done, total int)
}

// Point is one λ_p of a sweep.
type Point struct {
	LambdaP float64           `json:"lambda_p"`
	Kappa   estimate.Interval `json:"kappa"` // κ(M⁻¹A)
	Steps   int               `json:"steps"` // of Lanczos
	Bound   float64           `json:"bound"` // Bound for η's upper end
	// Predicted are the iterations to τ by RitzIterations; 0 if nothing can be said.
	Predicted int `json:"iterations_predicted"`
	// Iterations are those that PCG took, the most of its right-hand sides; nil where it was
	// not run or had not ended.
	Iterations *int   `json:"iterations"`
	Status     string `json:"status,omitempty"` // of PCG
	// Seconds is the predicted time of a solve for all right-hand sides, set-up included; 0 if
	// nothing can be said.
	Seconds float64 `json:"seconds_predicted"`
}

// Result is a sweep.
type Result struct {
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

// settled returns a copy of o with the defaults filled in.
func (o *Options) settled() Options {
	var s Options
	if o != nil {
		s = *o
	}
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	set(&s.Points, 13)
	set(&s.Steps, 150)
	set(&s.Columns, 1)
	set(&s.MaxIter, 200)
	if s.Confidence == 0 {
		s.Confidence = 0.95
	}
	if s.Width == 0 {
		s.Width = 0.3
	}
	if s.Tol == 0 {
		s.Tol = 1e-3
	}
	if s.Progress == nil {
		s.Progress = func(string, int, int) {}
	}
	return s
}

// Check returns an error for options that no data could make right.
func (o *Options) Check() error {
	s := o.settled()
	if err := estimate.CheckConfidence(s.Confidence); err != nil {
		return err
	}
	for _, l := range s.LambdaP {
		if !(l > 0) || math.IsInf(l, 1) {
			return fmt.Errorf("λ_p = %g: want a positive number", l)
		}
	}
	switch {
	case s.LambdaP != nil && len(s.LambdaP) == 0:
		return fmt.Errorf("an empty grid of λ_p: want at least one value")
	case s.Points < 2:
		return fmt.Errorf("a grid of %d values of λ_p: want at least 2", s.Points)
	case !(s.Width > 0) || math.IsInf(s.Width, 1):
		return fmt.Errorf("width %g of κ's interval: want a positive number, such as 0.3", s.Width)
	case s.Steps < 1:
		return fmt.Errorf("%d steps of Lanczos: want at least 1", s.Steps)
	case s.MaxIter < 1:
		return fmt.Errorf("at most %d iterations: want at least 1", s.MaxIter)
	case !(s.Tol > 0 && s.Tol < 1):
		return fmt.Errorf("τ = %g: want a tolerance in (0, 1)", s.Tol)
	}
	return nil
}

// Sweep measures ZZᵀ+λ_pI as a preconditioner of K+λI for a grid of λ_p: η = ‖K−ZZᵀ‖₂, and
// for each λ_p an interval of κ and, with the first right-hand sides of y, n×t, the
// iterations of PCG. formed are the seconds that Z took, for the predicted times. If ctx ends
// it returns what is known by then beside ctx's error: intervals are valid, if wide, after
// any step. Work: ns² + 9s³ flops, and a product with K of as many columns as there are λ_p
// for a step or an iteration. It panics if shapes differ.
func Sweep(ctx context.Context, a Matrix, z *points.Dense32, y *mat.Dense, formed float64, o *Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	opt := o.settled()
	n, t := y.Dims()
	if a.Dim() != n || z.N != n && opt.Comm == nil {
		panic(fmt.Sprintf("tune: K of order %d, %d×%d features, %d×%d targets", a.Dim(), z.N, z.D, n, t))
	}
	start := time.Now()
	s := &sweep{a: a, y: y, o: &opt, res: &Result{N: n, S: z.D, Lambda: a.Lambda(), Best: -1}}
	err := s.prepare(ctx, z, formed)
	if err == nil {
		err = s.eta(ctx)
	}
	if err == nil {
		err = s.kappas(ctx)
	}
	if err == nil && opt.Columns > 0 {
		err = s.solves(ctx)
	}
	s.finish()
	s.res.Total = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || len(s.res.Points) == 0) {
		return nil, err
	}
	return s.res, err
}

// sweep is the state of a Sweep.
type sweep struct {
	a   Matrix
	y   *mat.Dense
	o   *Options
	w   *precond.Woodbury // in the eigen form
	res *Result
}

// prepare forms ZᵀZ, decomposes it, and measures what a solve with these features costs: its
// set-up with L⁻¹, and an iteration.
func (s *sweep) prepare(ctx context.Context, z *points.Dense32, formed float64) error {
	clock := time.Now()
	lap := func() float64 {
		d := time.Since(clock).Seconds()
		clock = time.Now()
		return d
	}
	var g precond.Gram
	if err := s.o.grow(ctx, &g, s.res.N, z); err != nil {
		return err
	}
	gram := lap()
	var err error
	if s.w, err = s.o.inverse(ctx, &g, s.res, z, precond.FormEigen); err != nil {
		return err
	}
	s.res.Eigen = lap()
	m, factor := s.w, s.res.Eigen
	if w, err := s.o.inverse(ctx, &g, s.res, z, precond.FormLInv); err == nil {
		m, factor = w, lap()
	} else if ctx.Err() != nil {
		return ctx.Err()
	}
	s.res.SetUp = formed + gram + factor
	s.res.PerIter, err = s.iteration(ctx, m)
	return err
}

// grow forms ZᵀZ, on ranks or not.
func (o *Options) grow(ctx context.Context, g *precond.Gram, n int, z *points.Dense32) error {
	if o.Comm != nil {
		return g.GrowOnRanks(ctx, o.Comm, n, z)
	}
	return g.Grow(ctx, z)
}

// inverse returns ZZᵀ+λI in a form.
func (o *Options) inverse(ctx context.Context, g *precond.Gram, r *Result, z *points.Dense32, form precond.Form) (*precond.Woodbury, error) {
	p := &precond.Options{Form: form}
	if o.Comm != nil {
		return precond.NewFromGramOnRanks(ctx, o.Comm, r.N, z, g, r.Lambda, p)
	}
	return precond.NewFromGram(ctx, z, g, r.Lambda, p)
}

// iteration returns the seconds that a product and a solve of all right-hand sides take, the
// least of five.
func (s *sweep) iteration(ctx context.Context, m *precond.Woodbury) (float64, error) {
	n, t := s.y.Dims()
	x := mat.NewDense(n, t, nil)
	best := math.Inf(1)
	for range 5 {
		clock := time.Now()
		if err := s.a.MulTo(ctx, x, s.y); err != nil {
			return 0, err
		}
		if err := m.SolveTo(ctx, x, x); err != nil {
			return 0, err
		}
		best = min(best, time.Since(clock).Seconds())
	}
	return best, nil
}

// difference is K−ZZᵀ.
type difference struct {
	a Matrix
	w *precond.Woodbury
}

func (d difference) Dim() int { return d.a.Dim() }

func (d difference) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	var zz mat.Dense
	zz.CloneFrom(src)
	if err := d.w.ZZMulTo(ctx, &zz, src); err != nil {
		return err
	}
	if err := d.a.KMulTo(ctx, dst, src); err != nil {
		return err
	}
	dst.Sub(dst, &zz)
	return nil
}

// eta brackets ‖K−ZZᵀ‖₂.
func (s *sweep) eta(ctx context.Context) error {
	r, err := lanczos.Run(ctx, difference{s.a, s.w}, &lanczos.Options{
		Steps: s.o.Steps, Tol: 0.05, Confidence: s.o.half(), Norm: true, Start: s.o.Stream.Sub("eta"),
		Monitor: func(r *lanczos.Result) error {
			s.o.Progress("eta", r.Steps, s.o.Steps)
			return nil
		},
	})
	if r != nil {
		s.res.Eta = r.Norm()
		s.res.Eta.Lo, s.res.Eta.Hi = max(0, s.res.Eta.Lo-s.o.KError), s.res.Eta.Hi+s.o.KError
	}
	return err
}

// kappas brackets κ for every λ_p of the grid, side by side.
func (s *sweep) kappas(ctx context.Context) error {
	grid := s.o.LambdaP
	if grid == nil {
		grid = Grid(s.res.Lambda, s.res.Eta.Value, s.o.Points)
	}
	f, err := s.w.Family(grid)
	if err != nil {
		return err
	}
	done := 0
	results, err := lanczos.RunMany(ctx, s.a, f, len(grid), &lanczos.Options{
		Steps: s.o.Steps, Tol: s.o.Width, Confidence: s.o.half(), Cond: true, Definite: true, Start: s.o.Stream.Sub("kappa"),
		Monitor: func(r *lanczos.Result) error {
			if r.Steps > done {
				done = r.Steps
				s.o.Progress("lanczos", done, s.o.Steps)
			}
			return nil
		},
	})
	for c, r := range results {
		if r == nil {
			continue
		}
		p := Point{LambdaP: grid[c], Kappa: s.kappa(r, grid[c]), Steps: r.Steps, Bound: Bound(s.res.Lambda, grid[c], s.res.Eta.Hi)}
		if k := RitzIterations(r.Alpha, r.Beta, s.o.Tol, p.Kappa.Value); k < math.MaxInt32 {
			p.Predicted = int(k)
		}
		s.res.Points = append(s.res.Points, p)
	}
	return err
}

// kappa returns the interval of κ for λ_p: that of Lanczos, allowing for ‖K_stored−K‖₂ ≤ e·λ, and
// no wider than what η alone says of the ends (see Bound). Each has half of the failure
// probability.
func (s *sweep) kappa(r *lanczos.Result, lambdaP float64) estimate.Interval {
	lambda, eta, e := s.res.Lambda, s.res.Eta.Hi, s.o.KError/s.res.Lambda
	down := max(0, 1-e)
	k := r.Cond()
	k.Confidence = s.o.Confidence
	k.Lo = max(1, k.Lo*down/(1+e))
	least := max(r.Min.Lo/(1+e), 1/max(1, (lambdaP+eta)/lambda)) // of λ_min
	most := min(r.Max.Hi/down, max(1, (lambda+eta)/lambdaP))     // of λ_max
	k.Hi = max(k.Lo, most/least)
	return k
}

// half returns the confidence that leaves half of the failure probability.
func (o *Options) half() float64 { return 1 - (1-o.Confidence)/2 }

// solves counts the iterations of PCG for every λ_p, side by side.
func (s *sweep) solves(ctx context.Context) error {
	n, t := s.y.Dims()
	cols := min(s.o.Columns, t)
	b := mat.NewDense(n, cols*len(s.res.Points), nil)
	var lambdas []float64
	for i, p := range s.res.Points {
		for j := range cols {
			lambdas = append(lambdas, p.LambdaP)
			b.SetCol(i*cols+j, mat.Col(nil, j, s.y))
		}
	}
	f, err := s.w.Family(lambdas)
	if err != nil {
		return err
	}
	res, err := pcg.Solve(ctx, s.a, f, b, &pcg.Options{Tol: s.o.Tol, Aim: aim, MaxIter: s.o.MaxIter, Monitor: func(it *pcg.Iteration) error {
		s.o.Progress("solve", it.Index, s.o.MaxIter)
		return nil
	}})
	if res == nil {
		return err
	}
	for i := range s.res.Points {
		its, status := 0, pcg.Active
		for c := i * cols; c < (i+1)*cols; c++ {
			col := res.Columns[c]
			if col.Status == pcg.Canceled && res.RelRes[c] <= s.o.Tol { // it had ended, by its recurrence
				col.Status = pcg.Converged
			}
			its, status = max(its, col.Iterations), max(status, col.Status)
		}
		if status < pcg.Canceled {
			s.res.Points[i].Iterations, s.res.Points[i].Status = &its, status.String()
		}
	}
	return err
}

// finish predicts the times and chooses the least; of equal iterations the smaller κ.
func (s *sweep) finish() {
	r := s.res
	for i := range r.Points {
		p := &r.Points[i]
		its := p.Predicted
		if p.Iterations != nil {
			its = *p.Iterations
		}
		if its == 0 || p.Iterations != nil && p.Status != pcg.Converged.String() {
			continue
		}
		p.Seconds = r.SetUp + float64(its)*r.PerIter
		if r.Best < 0 || p.Seconds < r.Points[r.Best].Seconds || p.Seconds == r.Points[r.Best].Seconds && p.Kappa.Value < r.Points[r.Best].Kappa.Value {
			r.Best = i
		}
	}
}

// At returns the point of that λ_p, nil if there is none.
func (r *Result) At(lambdaP float64) *Point {
	for i := range r.Points {
		if r.Points[i].LambdaP == lambdaP {
			return &r.Points[i]
		}
	}
	return nil
}
