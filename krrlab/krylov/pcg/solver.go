package pcg

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

const (
	unit          = 0x1p-53 // unit roundoff of float64
	stagnantSteps = 10      // in a row
	maxRestarts   = 50
	rowBlock      = 512 // rows summed at a time
	givenUp       = -1  // in solver.before: the column is restarted no more
)

// restartTarget are the shares of Tol that restarts aim at in turn when Tol was missed: a little less
// than Tol first, since a residual that misses it mostly misses by little.
var restartTarget = [...]float64{0.9, 0.5, 0.25}

// solver is the state of one Solve.
type solver struct {
	a, exact Operator
	m        Preconditioner
	opt      Options
	b        *mat.Dense
	n, t     int

	x       *mat.Dense // n×t
	r, p, w *mat.Dense // n×len(cols), on the first part of their buffers
	z       *mat.Dense // M⁻¹R: w, or r without M
	buf     [3][]float64

	cols []int // active columns, ascending
	keep []int // scratch of drop

	ynorm  []float64  // ‖y_j‖₂, by column
	target []float64  // of ‖r_j‖₂/‖y_j‖₂, by recurrence
	still  []int      // steps in a row that left x_j as it was
	before []float64  // true residual when the column was last restarted; 0 or givenUp
	kept   *mat.Dense // X when columns were last restarted; nil until one is

	// By position in cols.
	rho, rhoNew, pAp, alpha, beta, rr, xx, dx []float64
	moved                                     []float64 // what step sums: rr, xx and dx

	sweep       sweep
	left, right []float64 // the blocks of a sweep
	by          []float64 // and the matrix that they are multiplied by,
	old, new    int       // its rows and columns

	relres, alphas, betas table
	alphaRow, betaRow     []float64 // of this iteration, by column
	decreases             table
	fall                  []float64  // its last row
	fallen                []float64  // the sum of those before the first restart
	last                  *mat.Dense // residuals by recurrence as columns ended, n×t; nil without bounds
	block                 *block     // nil for Solve
	bounds                bounds
	resumed               bool // the loop continues where the state restored left it
	it                    Iteration
	stopped               error // what the monitor returned
	res                   *Result
}

func newSolver(a Operator, m Preconditioner, b *mat.Dense, o *Options) (*solver, error) {
	n, t := b.Dims()
	s := &solver{a: a, m: m, b: b, n: n, t: t}
	if o != nil {
		s.opt = *o
	}
	s.checkShapes()
	s.opt.Tol = cmp.Or(s.opt.Tol, 1e-3)
	s.opt.Aim = cmp.Or(s.opt.Aim, 1)
	s.opt.MaxIter = cmp.Or(s.opt.MaxIter, 1000)
	s.exact = a
	if s.opt.Exact != nil {
		s.exact = s.opt.Exact
	} else {
		s.opt.Refine = 0
	}
	if err := checkFinite("the right-hand side", b); err != nil {
		return nil, err
	}
	s.x = mat.NewDense(n, t, nil)
	if s.opt.InitX != nil {
		if err := checkFinite("the initial guess", s.opt.InitX); err != nil {
			return nil, err
		}
		s.x.Copy(s.opt.InitX)
	}
	s.r, s.p, s.w = new(mat.Dense), new(mat.Dense), new(mat.Dense)
	for i := range s.buf {
		s.buf[i] = make([]float64, n*t)
	}
	for _, v := range []*[]float64{&s.ynorm, &s.target, &s.before, &s.rho, &s.rhoNew, &s.pAp, &s.alpha,
		&s.beta, &s.rr, &s.xx, &s.dx, &s.fallen} {
		*v = make([]float64, t)
	}
	s.moved = make([]float64, 3*t)
	s.still, s.cols, s.keep = make([]int, t), make([]int, 0, t), make([]int, 0, t)
	s.relres, s.decreases = newTable(t, s.historyRows()), newTable(t, s.historyRows())
	s.res = &Result{
		X: s.x, Tol: s.opt.Tol, Columns: make([]Column, t), RelRes: make([]float64, t), TrueRelRes: make([]float64, t),
	}
	if s.opt.LambdaMin > 0 {
		s.last, s.res.Gap = mat.NewDense(n, t, nil), make([]float64, t)
	}
	s.forgetResiduals()
	s.resize(t)
	return s, s.measure()
}

func (s *solver) checkShapes() {
	for what, m := range map[string]interface{ Dim() int }{"A": s.a, "the preconditioner": s.m,
		"Options.Exact": s.opt.Exact} {
		if m != nil && m.Dim() != s.n {
			panic(fmt.Sprintf("pcg: B is %d×%d, %s of order %d", s.n, s.t, what, m.Dim()))
		}
	}
	o := &s.opt
	if x := o.InitX; x != nil {
		if n, t := x.Dims(); n != s.n || t != s.t {
			panic(fmt.Sprintf("pcg: B is %d×%d, Options.InitX %d×%d", s.n, s.t, n, t))
		}
	}
	if !(o.Tol >= 0) || o.MaxIter < 0 || !(o.LambdaMin >= 0) || math.IsInf(o.LambdaMin, 1) ||
		!(o.Refine >= 0 && o.Refine < 1) || !(o.Aim >= 0 && o.Aim <= 1) {
		panic(fmt.Sprintf("pcg: tolerance %v, at most %d iterations, λ_min(M⁻¹A) ≥ %v: want none negative; refine %v, "+
			"want it in [0, 1); aim %v, want it in (0, 1]", o.Tol, o.MaxIter, o.LambdaMin, o.Refine, o.Aim))
	}
}

// checkFinite returns an error that names the first entry that is not finite.
func checkFinite(what string, x *mat.Dense) error {
	raw := x.RawMatrix()
	for i := range raw.Rows {
		for j, v := range raw.Data[i*raw.Stride : i*raw.Stride+raw.Cols] {
			if !finite(v) {
				return fmt.Errorf("pcg: %s has %v in row %d, column %d", what, v, i, j)
			}
		}
	}
	return nil
}

// historyRows returns the number of rows of a table of the history to begin with.
func (s *solver) historyRows() int { return min(s.opt.MaxIter, 1024) + 1 }

// resize makes R, P and W blocks of k columns.
func (s *solver) resize(k int) {
	for i, d := range [...]*mat.Dense{s.r, s.p, s.w} {
		s.reshape(d, i, k)
	}
}

// reshape makes d, the view of buffer i, a block of k columns.
func (s *solver) reshape(d *mat.Dense, i, k int) {
	d.SetRawMatrix(blas64.General{Rows: s.n, Cols: k, Stride: k, Data: s.buf[i][:s.n*k]})
}

// measure sets the norms of the columns of B. Squares of what is refused might under- or overflow.
func (s *solver) measure() error {
	for c := range s.ynorm {
		if top := mat.Norm(s.b.ColView(c), math.Inf(1)); top != 0 && !(top >= 1e-100 && top <= 1e100) {
			return fmt.Errorf("pcg: column %d of the right-hand side is of size %.2g: want 0, or 1e-100 to 1e100", c,
				top)
		}
		var sum float64
		for i := range s.n {
			v := s.b.At(i, c)
			sum += v * v
		}
		s.ynorm[c] = math.Sqrt(sum)
	}
	return nil
}

// start sets R = B − AX and takes up the columns that have not converged.
func (s *solver) start(ctx context.Context) error {
	guess := false
	for c, y := range s.ynorm {
		if y == 0 { // y_j = 0: x_j = 0
			s.res.Columns[c].Status = Converged
			s.x.SetCol(c, make([]float64, s.n))
		} else {
			guess = guess || s.opt.InitX != nil
		}
	}
	if guess {
		if err := s.residual(ctx, s.a, &s.res.Stats.MulTo, s.res.RelRes); err != nil {
			return err
		}
	} else {
		s.r.Copy(s.b)
		for c, y := range s.ynorm {
			if y > 0 {
				s.res.RelRes[c] = 1
			}
		}
	}
	for c := range s.t {
		col := &s.res.Columns[c]
		s.target[c] = s.aim(s.opt.Aim*s.opt.Tol, s.res.RelRes[c])
		switch rel := s.res.RelRes[c]; {
		case col.Status != Active:
		case !finite(rel):
			s.end(c, Breakdown, rel)
		case rel <= s.opt.Tol:
			col.Status = Converged
		default:
			s.cols = append(s.cols, c)
		}
	}
	copy(s.relres.add(), s.res.RelRes)
	if s.last != nil {
		s.last.Copy(s.r)
	}
	s.take()
	return nil
}

// take makes R, n×t, the block of the columns s.cols.
func (s *solver) take() {
	compact(s.buf[0], s.n, s.t, s.cols)
	if len(s.cols) > 0 {
		s.resize(len(s.cols))
	}
}

// drop takes the columns that have ended out of the blocks.
func (s *solver) drop() {
	s.keep = s.keep[:0]
	for j, c := range s.cols {
		if s.res.Columns[c].Status == Active {
			s.keep = append(s.keep, j)
		}
	}
	if len(s.keep) == len(s.cols) {
		return
	}
	s.keepResiduals(false)
	for _, b := range s.buf {
		compact(b, s.n, len(s.cols), s.keep)
	}
	for i, j := range s.keep {
		s.cols[i], s.rho[i], s.rhoNew[i] = s.cols[j], s.rho[j], s.rhoNew[j]
		if s.bounds.mu > 0 {
			s.bounds.left[i] = s.bounds.left[j]
		}
	}
	s.cols = s.cols[:len(s.keep)]
	if len(s.cols) > 0 {
		s.resize(len(s.cols))
	}
}

// multiply sets W = AP.
func (s *solver) multiply(ctx context.Context) error {
	return s.timed(ctx, &s.res.Stats.MulTo, "the product with A", func() error { return s.a.MulTo(ctx, s.w, s.p) })
}

// precondition sets Z = M⁻¹R; without M, Z is R.
func (s *solver) precondition(ctx context.Context) error {
	if s.m == nil {
		s.z = s.r
		return ctx.Err()
	}
	s.z = s.w
	return s.timed(ctx, &s.res.Stats.SolveTo, "the solve with the preconditioner", func() error {
		if m, ok := s.m.(ColumnPreconditioner); ok {
			return m.SolveColumnsTo(ctx, s.w, s.r, s.cols) // z_j = M_j⁻¹r_j
		}
		return s.m.SolveTo(ctx, s.w, s.r)
	})
}

// timed counts one call of f.
func (s *solver) timed(ctx context.Context, op *Op, what string, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	err := f()
	op.Calls++
	_, k := s.w.Dims()
	op.Columns += k
	op.Seconds += time.Since(start).Seconds()
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("pcg: %s at iteration %d: %w", what, s.res.Iterations, err)
	}
	return err
}

func (s *solver) report() error {
	copy(s.relres.add(), s.res.RelRes)
	if s.opt.Monitor == nil {
		return nil
	}
	active := 0
	for _, c := range s.cols {
		if s.res.Columns[c].Status == Active {
			active++
		}
	}
	s.it = Iteration{
		Index: s.res.Iterations, MaxRelRes: slices.Max(s.res.RelRes), RelRes: s.res.RelRes,
		Error: s.bounds.all.last(), Fallen: s.fallen, Active: active, Restart: len(s.res.History.Restarts), s: s,
	}
	s.stopped = s.opt.Monitor(&s.it)
	return s.stopped
}
