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
	unitRoundoff     = 0x1p-53 // unit roundoff of float64
	maxStagnantSteps = 10      // a column has stagnated after this many consecutive steps that did not change x_j
	maxRestarts      = 50      // maximum number of restarts of a solve
	rowBlock         = 512     // number of rows that a sweep processes as one piece
	noMoreRestarts   = -1      // value in solver.restartResidual of a column that must not be restarted again
)

// restartTargets are the targets of successive restarts, as fractions of Tol, of a column that missed Tol by little.
// The first is only slightly below 1 because most columns miss Tol by little.
var restartTargets = [...]float64{0.9, 0.5, 0.25}

// solver is the state of one call of Solve, and the common part of the state of SolveBlock.
type solver struct {
	a, exact Operator       // A and Options.Exact
	m        Preconditioner // M, Normalized unless it is a ColumnPreconditioner; nil if there is none
	// normalized is the same as m, or nil if m is nil or a ColumnPreconditioner.
	normalized *Normalized
	opt        Options
	b          *mat.Dense // B, n×t
	n, t       int        // numbers of rows and columns of B

	x       *mat.Dense   // current iterate X, n×t
	r, p, w *mat.Dense   // residuals R, directions P, and AP or M⁻¹R; n×len(cols), views of the start of buf
	z       *mat.Dense   // Z = M⁻¹R; the same block as w, or as r without M
	buf     [3][]float64 // memory of r, p and w, n×t each

	cols          []int // active columns, ascending
	keptPositions []int // scratch of removeEnded: positions in cols of the columns that remain active

	yNorm           []float64  // ‖y_j‖₂, by column
	xNorm           []float64  // ‖x_j‖₂ after the last step of the column
	target          []float64  // value of ‖r_j‖₂/‖y_j‖₂ at which the recursive residual has converged, by column
	stagnantSteps   []int      // number of consecutive steps that did not change x_j, by column
	restartResidual []float64  // relative true residual at the column's last restart; 0 or noMoreRestarts if none
	xAtRestart      *mat.Dense // columns of X at their last restart; nil before the first restart

	// The following vectors are indexed by the position in cols.
	rho, rhoNew, pAp, alpha, beta   []float64 // ρ_j, the next ρ_j, p_jᵀAp_j, α_j and β_j
	rSquares, xSquares, stepSquares []float64 // ‖r_j‖₂², ‖x_j‖₂² and ‖α_jp_j‖₂² after a step; parts of stepSums
	stepSums                        []float64 // rSquares, xSquares and stepSquares, one after the other

	sweep                 sweep
	leftBlock, rightBlock []float64 // operands of the current sweep
	multiplier            []float64 // matrix F of multiplyBlock, oldWidth×newWidth
	oldWidth, newWidth    int       // numbers of columns of the blocks before and after the current sweep

	relRes, alphas, betas table      // history of ‖r_j‖₂/‖y_j‖₂, α_j and β_j, one row per iteration
	alphaRow, betaRow     []float64  // α_j and β_j of the current iteration, by column
	decreases             table      // decrease of ‖e_j‖_A²/‖y_j‖₂² in each iteration
	decreaseRow           []float64  // the row of decreases of the current iteration
	totalDecrease         []float64  // sum of the rows of decreases before the first restart
	endResiduals          *mat.Dense // recursive residuals of ended columns, n×t; nil without Options.LambdaMin
	method                method     // part of an iteration that differs between Solve and SolveBlock
	block                 *block     // the method of SolveBlock; nil in Solve
	bounds                bounds     // upper bounds of the errors
	smooth                smoothing  // state of Options.Smooth
	resumed               bool       // a state was restored, so iterate must skip its initialization
	iteration             Iteration
	monitorErr            error // error returned by the monitor
	res                   *Result
}

// newSolver checks the arguments of Solve, sets the defaults of the options, and allocates the state. It returns an
// error if B or Options.InitX is not finite, or if a column of B is too small or too large.
func newSolver(a Operator, m Preconditioner, b *mat.Dense, o *Options) (*solver, error) {
	n, t := b.Dims()
	s := &solver{a: a, m: m, b: b, n: n, t: t}
	if _, ok := m.(ColumnPreconditioner); m != nil && !ok {
		s.normalized = Normalize(m)
		s.m = s.normalized
	}
	if o != nil {
		s.opt = *o
	}
	s.checkShapes()
	s.opt.Tol = cmp.Or(s.opt.Tol, 1e-3)
	s.opt.TolFraction = cmp.Or(s.opt.TolFraction, 1)
	s.opt.MaxIter = cmp.Or(s.opt.MaxIter, 1000)
	s.exact = a
	if s.opt.Exact != nil {
		s.exact = s.opt.Exact
	} else {
		s.opt.ReachableReduction = 0
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
	for _, vector := range []*[]float64{&s.yNorm, &s.xNorm, &s.target, &s.restartResidual, &s.rho, &s.rhoNew, &s.pAp,
		&s.alpha, &s.beta, &s.totalDecrease} {
		*vector = make([]float64, t)
	}
	s.stepSums = make([]float64, 3*t)
	s.stagnantSteps, s.cols, s.keptPositions = make([]int, t), make([]int, 0, t), make([]int, 0, t)
	s.relRes, s.decreases = newTable(t, s.initialHistoryRows()), newTable(t, s.initialHistoryRows())
	s.res = &Result{
		X: s.x, Tol: s.opt.Tol, Columns: make([]Column, t), RelRes: make([]float64, t), TrueRelRes: make([]float64, t),
	}
	if s.opt.LambdaMin > 0 {
		s.endResiduals, s.res.Gap = mat.NewDense(n, t, nil), make([]float64, t)
	}
	s.invalidateResiduals()
	s.resize(t)
	return s, s.setNorms()
}

// checkShapes panics if the shapes of the operands do not match, or if an option is out of range.
func (s *solver) checkShapes() {
	for name, operand := range map[string]interface{ Dim() int }{"A": s.a, "the preconditioner": s.m,
		"Options.Exact": s.opt.Exact} {
		if operand != nil && operand.Dim() != s.n {
			panic(fmt.Sprintf("pcg: B is %d×%d, %s of order %d", s.n, s.t, name, operand.Dim()))
		}
	}
	o := &s.opt
	if o.Smooth && (o.Checkpoint != nil || o.Resume != nil) {
		panic("pcg: Options.Smooth with checkpoints: the smoothed iterates are not part of a State")
	}
	if x := o.InitX; x != nil {
		if n, t := x.Dims(); n != s.n || t != s.t {
			panic(fmt.Sprintf("pcg: B is %d×%d, Options.InitX %d×%d", s.n, s.t, n, t))
		}
	}
	if !(o.Tol >= 0) || o.MaxIter < 0 || !(o.LambdaMin >= 0) || math.IsInf(o.LambdaMin, 1) ||
		!(o.ReachableReduction >= 0 && o.ReachableReduction < 1) || !(o.TolFraction >= 0 && o.TolFraction <= 1) {
		panic(fmt.Sprintf("pcg: tolerance %v, at most %d iterations, λ_min(M⁻¹A) ≥ %v: want none negative; "+
			"reduction %v, want it in [0, 1); fraction %v of the tolerance, want it in (0, 1]", o.Tol, o.MaxIter,
			o.LambdaMin, o.ReachableReduction, o.TolFraction))
	}
}

// checkFinite returns an error that gives the position of the first entry of x that is not finite.
func checkFinite(name string, x *mat.Dense) error {
	raw := x.RawMatrix()
	for i := range raw.Rows {
		for j, v := range raw.Data[i*raw.Stride : i*raw.Stride+raw.Cols] {
			if !finite(v) {
				return fmt.Errorf("pcg: %s has %v in row %d, column %d", name, v, i, j)
			}
		}
	}
	return nil
}

// initialHistoryRows returns the number of rows for which a table of the history is allocated first; it grows if there
// are more iterations.
func (s *solver) initialHistoryRows() int { return min(s.opt.MaxIter, 1024) + 1 }

// resize sets the number of columns of R, P and W to k.
func (s *solver) resize(k int) {
	for i, view := range [...]*mat.Dense{s.r, s.p, s.w} {
		s.reshape(view, i, k)
	}
}

// reshape makes view an n×k view of buffer i.
func (s *solver) reshape(view *mat.Dense, i, k int) {
	view.SetRawMatrix(blas64.General{Rows: s.n, Cols: k, Stride: k, Data: s.buf[i][:s.n*k]})
}

// setNorms sets yNorm, the norms of the columns of B. It returns an error for columns whose squares might underflow or
// overflow.
func (s *solver) setNorms() error {
	for c := range s.yNorm {
		if largest := mat.Norm(s.b.ColView(c), math.Inf(1)); largest != 0 && !(largest >= 1e-100 && largest <= 1e100) {
			return fmt.Errorf("pcg: column %d of the right-hand side is of size %.2g: want 0, or 1e-100 to 1e100", c,
				largest)
		}
		var sum float64
		for i := range s.n {
			v := s.b.At(i, c)
			sum += v * v
		}
		s.yNorm[c] = math.Sqrt(sum)
	}
	return nil
}

// start sets R = B − AX and collects in s.cols the columns that have not converged. It sets the initial guess of
// columns with y_j = 0 to 0.
func (s *solver) start(ctx context.Context) error {
	hasGuess := false
	for c, yNorm := range s.yNorm {
		if yNorm == 0 { // y_j = 0: x_j = 0
			s.res.Columns[c].Status = Converged
			s.x.SetCol(c, make([]float64, s.n))
		} else {
			hasGuess = hasGuess || s.opt.InitX != nil
		}
	}
	if hasGuess {
		if err := s.computeResidual(ctx, s.a, &s.res.Stats.MulTo, s.res.RelRes); err != nil {
			return err
		}
	} else {
		s.r.Copy(s.b)
		for c, yNorm := range s.yNorm {
			if yNorm > 0 {
				s.res.RelRes[c] = 1
			}
		}
	}
	for c := range s.t {
		column := &s.res.Columns[c]
		s.target[c] = s.reachableTarget(s.opt.TolFraction*s.opt.Tol, s.res.RelRes[c])
		switch relRes := s.res.RelRes[c]; {
		case column.Status != Active:
		case !finite(relRes):
			s.endColumn(c, Breakdown, relativeResidual, relRes)
		case relRes <= s.opt.Tol:
			column.Status = Converged
		default:
			s.cols = append(s.cols, c)
		}
	}
	copy(s.relRes.addRow(), s.res.RelRes)
	if s.endResiduals != nil {
		s.endResiduals.Copy(s.r)
	}
	s.packActive()
	return nil
}

// packActive reduces R from n×t to the columns s.cols.
func (s *solver) packActive() {
	compact(s.buf[0], s.n, s.t, s.cols)
	if len(s.cols) > 0 {
		s.resize(len(s.cols))
	}
}

// removeEnded removes the columns that have ended from s.cols, and from the blocks and vectors that have a column
// or an entry for each of them. A block solve removes them from C only, so that all directions remain.
func (s *solver) removeEnded() {
	s.keptPositions = s.keptPositions[:0]
	for j, c := range s.cols {
		if s.res.Columns[c].Status == Active {
			s.keptPositions = append(s.keptPositions, j)
		} else {
			s.copySmoothed(s.x, s.cols[j:j+1])
		}
	}
	if len(s.keptPositions) == len(s.cols) {
		return
	}
	s.saveEndResiduals()
	width := len(s.cols)
	for i, j := range s.keptPositions {
		s.cols[i] = s.cols[j]
	}
	s.cols = s.cols[:len(s.keptPositions)]
	if s.block != nil {
		compact(s.block.c, s.block.k, width, s.keptPositions)
		return
	}
	for _, buf := range s.buf {
		compact(buf, s.n, width, s.keptPositions)
	}
	vectors := [][]float64{s.rho, s.rhoNew}
	if s.bounds.mu > 0 {
		vectors = append(vectors, s.bounds.remaining)
	}
	for _, v := range vectors {
		compact(v, 1, width, s.keptPositions)
	}
	if len(s.cols) > 0 {
		s.resize(len(s.cols))
	}
}

// multiply sets W = AP.
func (s *solver) multiply(ctx context.Context) error {
	return s.timed(ctx, &s.res.Stats.MulTo, "the product with A", func() error { return s.a.MulTo(ctx, s.w, s.p) })
}

// precondition sets Z = M⁻¹R. Without M, Z is R itself.
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

// timed calls f and counts the call and its time in op. Errors name the operation.
func (s *solver) timed(ctx context.Context, op *OpStats, operation string, f func() error) error {
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
		err = fmt.Errorf("pcg: %s at iteration %d: %w", operation, s.res.Iterations, err)
	}
	return err
}

// callMonitor appends the residuals of this iteration to the history, and calls Options.Monitor.
func (s *solver) callMonitor() error {
	copy(s.relRes.addRow(), s.res.RelRes)
	if s.opt.Monitor == nil {
		return nil
	}
	active := 0
	for _, c := range s.cols {
		if s.res.Columns[c].Status == Active {
			active++
		}
	}
	s.iteration = Iteration{
		Index: s.res.Iterations, MaxRelRes: slices.Max(s.res.RelRes), RelRes: s.res.RelRes, XNorm: s.xNorm,
		ErrorBounds: s.bounds.history.lastRow(), TotalDecrease: s.totalDecrease, ActiveColumns: active,
		Restarts: len(s.res.History.Restarts), s: s,
	}
	s.monitorErr = s.opt.Monitor(&s.iteration)
	return s.monitorErr
}
