package lambdap

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
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

// Point is one λ_p of a sweep.
type Point struct {
	LambdaP float64           `json:"lambda_p"`
	Kappa   estimate.Interval `json:"kappa"` // κ(M⁻¹A)
	Min     estimate.Interval `json:"lambda_min"`
	Max     estimate.Interval `json:"lambda_max"`
	Steps   int               `json:"steps"` // of Lanczos
	Bound   float64           `json:"bound"` // Bound for η's upper end
	// Predicted are the iterations to τ by lanczos.RitzIterations; 0 if unknown.
	Predicted int `json:"iterations_predicted"`
	// Residuals are the relative residuals after 1, 2, … iterations that go with it (lanczos.Residuals).
	Residuals []float64 `json:"residuals_predicted"`
	// Iterations are those that PCG took, the most of its right-hand sides; nil where it was
	// not run or had not ended.
	Iterations *int       `json:"iterations"`
	Status     pcg.Status `json:"status,omitempty"` // of PCG, where iterations were counted
	// Seconds is the predicted time of a solve for all right-hand sides, set-up included; 0 if
	// unknown.
	Seconds float64 `json:"seconds_predicted"`
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
	n, _ := y.Dims()
	s := &sweep{a: a, y: y, o: o, res: &Sweep{N: n, S: z.D, Lambda: a.Lambda(), Best: -1}}
	err := s.prepare(ctx, z, formed)
	if err == nil {
		err = s.eta(ctx)
	}
	if err == nil {
		err = s.kappas(ctx)
	}
	if err == nil && o.Columns > 0 {
		err = s.solves(ctx)
	}
	s.finish()
	s.res.Total = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || len(s.res.Points) == 0) {
		return nil, err
	}
	return s.res, err
}

// sweep is a Sweep under way.
type sweep struct {
	a   matrix
	y   *mat.Dense
	o   *Options
	w   *precond.Woodbury // in the eigen form
	res *Sweep
}

// eta brackets ‖K−ZZᵀ‖₂.
func (s *sweep) eta(ctx context.Context) error {
	r, err := lanczos.Run(ctx, s.w.Outer().From(s.a), &lanczos.Options{
		Steps: s.o.Steps, Tol: 0.05, Confidence: s.o.half(), Norm: true, Start: s.o.stream.Sub("eta"),
		Monitor: func(r *lanczos.Result) error {
			s.o.progress("eta", r.Steps, s.o.Steps)
			return nil
		},
	})
	if r != nil {
		s.res.Eta = r.Norm()
		s.res.Eta.Lo, s.res.Eta.Hi = max(0, s.res.Eta.Lo-s.o.kError), s.res.Eta.Hi+s.o.kError
	}
	return err
}

// kappas brackets κ for every λ_p of the grid, side by side.
func (s *sweep) kappas(ctx context.Context) error {
	grid := s.o.Grid
	if len(grid) == 0 {
		grid = gridOf(s.res.Lambda, s.res.Eta.Value, s.o.Points)
	}
	f, err := s.w.Family(grid)
	if err != nil {
		return err
	}
	done := 0
	results, err := lanczos.RunMany(ctx, s.a, f, len(grid), &lanczos.Options{
		Steps: s.o.Steps, Tol: s.o.Width, Confidence: s.o.half(), Cond: true, Definite: true,
		Start: s.o.stream.Sub("kappa"),
		Monitor: func(r *lanczos.Result) error {
			if r.Steps > done {
				done = r.Steps
				s.o.progress("lanczos", done, s.o.Steps)
			}
			return nil
		},
	})
	for c, r := range results {
		if r == nil {
			continue
		}
		p := Point{LambdaP: grid[c], Steps: r.Steps, Bound: Bound(s.res.Lambda, grid[c], s.res.Eta.Hi)}
		p.Kappa, p.Min, p.Max = s.kappa(r, grid[c])
		p.Residuals, _ = lanczos.Residuals(r.Alpha, r.Beta)
		if k := lanczos.RitzIterations(r.Alpha, r.Beta, s.o.tol, p.Kappa.Value); k < math.MaxInt32 {
			p.Predicted = int(k)
		}
		s.res.Points = append(s.res.Points, p)
	}
	return err
}

// kappa returns the intervals of κ, λ_min and λ_max for λ_p: that of Lanczos, allowing for ‖K_stored−K‖₂ ≤ e·λ, and
// no wider than what η alone says about the ends (see Bound). Each has half of the failure
// probability.
func (s *sweep) kappa(r *lanczos.Result, lambdaP float64) (k, least, most estimate.Interval) {
	lambda, eta := s.res.Lambda, s.res.Eta.Hi
	k, least, most = r.Allowing(s.o.kError / lambda)
	k.Confidence = s.o.Confidence
	if r.Indefinite() { // then K is not known well enough for η either
		return k, least, most
	}
	least.Lo = min(least.Hi, max(least.Lo, 1/max(1, (lambdaP+eta)/lambda)))
	most.Hi = max(most.Lo, min(most.Hi, max(1, (lambda+eta)/lambdaP)))
	k.Hi = max(k.Lo, most.Hi/least.Lo)
	return k, least, most
}

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
	res, err := pcg.Solve(ctx, s.a, f, b, &pcg.Options{Tol: s.o.tol, Aim: stage.Aim, MaxIter: s.o.MaxIter,
		Monitor: func(it *pcg.Iteration) error {
			s.o.progress("solve", it.Index, s.o.MaxIter)
			return nil
		}})
	if res == nil {
		return err
	}
	for i := range s.res.Points {
		its, status := 0, pcg.Active
		for c := i * cols; c < (i+1)*cols; c++ {
			col := res.Columns[c]
			if col.Status == pcg.Canceled && res.RelRes[c] <= s.o.tol { // it had ended, by its recurrence
				col.Status = pcg.Converged
			}
			its, status = max(its, col.Iterations), max(status, col.Status)
		}
		if status < pcg.Canceled {
			s.res.Points[i].Iterations, s.res.Points[i].Status = &its, status
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
