package pcg

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/internal/plural"
)

// Operator is a symmetric positive definite n×n matrix A.
type Operator interface {
	// Dim returns n.
	Dim() int
	// MulTo sets dst = A·src. Both are n×k with contiguous rows, do not overlap, and
	// k may differ from call to call.
	MulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Bounded is an Operator that can bound the rounding errors of its products.
type Bounded interface {
	Operator
	// Rounding returns, for every column x of X, a bound of ‖fl(Ax)−Ax‖₂, or nil if no bound is known.
	Rounding(x *mat.Dense) []float64
}

// Preconditioner is a symmetric positive definite n×n matrix M that provides products with M⁻¹. The scale of M does not
// matter: Solve and SolveBlock use a Normalized one, unless M is a ColumnPreconditioner.
type Preconditioner interface {
	// Dim returns n.
	Dim() int
	// SolveTo sets dst = M⁻¹·r. Both are n×k with contiguous rows, do not overlap, and
	// k may differ from call to call. It returns an error or panics if the shapes are different.
	SolveTo(ctx context.Context, dst, r *mat.Dense) error
}

// ColumnPreconditioner is a Preconditioner with a separate matrix M_c for each column c of B. Solve then solves
// M_c⁻¹Ax_c = M_c⁻¹b_c, so many preconditioners can be compared with a single product with A per iteration. SolveBlock
// panics for a ColumnPreconditioner, because it combines the columns.
type ColumnPreconditioner interface {
	Preconditioner
	// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r for c = cols[j]. Both are
	// n×len(cols) with contiguous rows and do not overlap.
	SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error
}

// Options are the options of Solve and SolveBlock. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// Tol is τ: column j has converged when ‖y_j−Ax_j‖₂ ≤ τ‖y_j‖₂, where y_j is column j of B. Default 1e-3.
	Tol float64
	// TolFraction is the fraction of Tol that the recursive residual must reach, in (0, 1]. If products with A are
	// inaccurate, a true residual can miss Tol by a rounding error. A value slightly below 1 avoids the restart that
	// would follow. Default 1.
	TolFraction float64
	// MaxIter is the maximum number of iterations, including those after restarts. Default 1000.
	MaxIter int
	// InitX is the initial guess, n×t. It costs one additional product with A. Default 0.
	InitX *mat.Dense
	// Smooth smooths the iterates, so that their residuals never increase. An iteration from an InitX with few
	// wrong entries, whose residuals first increase, then takes about a third fewer steps to the tolerance. The answer
	// is no longer the iterate with the least A-norm of the error. Alpha, Beta, Decrease and TotalDecrease remain those
	// of the iterates before smoothing. Smoothing takes 2nt more numbers, two passes over them in each
	// iteration, and in SolveBlock 2nt² operations. Solve panics if Checkpoint or Resume is also set. Default: false.
	Smooth bool
	// Monitor, if not nil, is called after every iteration. If it returns an error, Solve ends with Status Stopped and
	// returns that error; it returns a nil error if the monitor returned ErrStop.
	Monitor func(*Iteration) error
	// Exact is the matrix used for true residuals. Default: A itself. If Exact is Bounded, the test for Converged adds
	// its rounding error bound to the residual.
	Exact Operator
	// ReachableReduction, in [0, 1), is the smallest factor by which products with A can reduce a residual of Exact,
	// about ‖A−Exact‖₂/λ_min. If Tol is less than a tenth of the current residual times ReachableReduction, the
	// residual is recomputed and the columns are restarted whenever the recursive residual has been reduced by it.
	// Default 0: the residual is recomputed only at Tol.
	ReachableReduction float64
	// LambdaMin is a lower bound μ > 0 of the smallest eigenvalue of M⁻¹A. With it, every iteration computes an upper
	// bound of the error (History.ErrorBounds). For A = K+λI with a semidefinite K and without M, μ = λ is valid; for M
	// = FFᵀ+λI with FFᵀ ≼ K, μ = 1 is valid. LambdaMin refers to the M that is passed, and not to the Normalized one.
	// It does not change the answer in any bit. Default 0: no bound is known.
	LambdaMin float64
	// Checkpoint, if not nil, is called between two iterations, and may write the state. If it returns an error, the
	// solve ends with Status Failed and that error.
	Checkpoint func(*State) error
	// Resume is the result of State.MarshalBinary in a solve with the same A, M, B and options. The solve continues
	// from that state. Stats count from there, and InitX is ignored. Solve returns an error if the state has another
	// shape; the caller must ensure that the bytes are intact. Default nil: start a new solve.
	Resume []byte
}

// ErrStop is returned by a Monitor to end the solve without an error.
var ErrStop = errors.New("stopped by the monitor")

// Iteration is the argument of a Monitor. The Iteration and its slices are valid only during the call.
type Iteration struct {
	Index       int       // number of this iteration, from 1
	MaxRelRes   float64   // maximum of RelRes
	RelRes      []float64 // relative recursive residuals ‖r_j‖₂/‖y_j‖₂ of all t columns
	XNorm       []float64 // norms ‖x_j‖₂ of the columns of the current iterate
	ErrorBounds []float64 // upper bounds of ‖x−x_j‖_A/‖y_j‖₂; nil without Options.LambdaMin
	// TotalDecrease is (‖e_j‖_A² at the start − ‖e_j‖_A² now)/‖y_j‖₂² until the first restart, after which it no longer
	// changes. If the solve started at 0, it is a lower bound of ‖x‖_A²/‖y_j‖₂².
	TotalDecrease []float64
	ActiveColumns int // number of columns still iterating
	Restarts      int // number of restarts from the true residual so far

	s *solver
}

// AnswerTo copies the current iterate X, n×t, to dst.
func (i *Iteration) AnswerTo(dst *mat.Dense) {
	dst.Copy(i.s.x)
	i.s.copySmoothed(dst, i.s.cols)
}

// Accept replaces the tolerance τ of the solve by tol if every recursive residual is at most TolFraction·tol. The
// iteration then ends, and the true residuals are tested with tol. Otherwise Accept changes nothing and returns false.
func (i *Iteration) Accept(tol float64) bool {
	s := i.s
	if !(i.MaxRelRes <= s.opt.TolFraction*tol) {
		return false
	}
	s.opt.Tol, s.res.Tol = tol, tol
	for c := range s.target {
		s.target[c] = s.opt.TolFraction * tol
	}
	for _, c := range s.cols {
		if s.res.Columns[c].Status == Active {
			s.res.Columns[c].Status = Converged
		}
	}
	return true
}

// Status is the outcome of a solve or of one of its columns.
type Status int

// The statuses are in order of increasing severity. The status of a solve is the most severe status of its columns.
const (
	// Active columns are still iterating; no result of a finished Solve is Active.
	Active Status = iota
	// Converged: the true residual, plus its rounding error bound if one is known, is at most Tol.
	Converged
	// MaxIterations: the true residual is above Tol after Options.MaxIter iterations.
	MaxIterations
	// Inaccurate: the recursive residual is at most Tol, but the true residual is above Tol or too close to it for its
	// rounding error, and restarting does not help (or the solve has restarted 50 times). Products with A are not
	// accurate enough for Tol, or A and Exact differ too much.
	Inaccurate
	// Stagnated: in 10 consecutive iterations ‖α_jp_j‖₂ ≤ 2⁻⁵³‖x_j‖₂, that is, x_j no longer changes in working
	// precision, and its residual is above Tol. Slow convergence alone never causes this status.
	Stagnated
	// IndefinitePreconditioner: r_jᵀM⁻¹r_j ≤ 0, so M is not positive definite.
	IndefinitePreconditioner
	// Indefinite: p_jᵀAp_j ≤ 0, so A is not positive definite.
	Indefinite
	// Breakdown: a computed number was not finite.
	Breakdown
	// Canceled: the context ended.
	Canceled
	// Stopped: the monitor returned an error.
	Stopped
	// Failed: A, M or Exact returned an error.
	Failed
	// Undecided: the computed true residual is at most Tol, but its rounding error bound is too large to prove it.
	// Solve does not return this status; a caller may assign it to an Inaccurate answer.
	Undecided
)

// statusNames are the texts of the statuses.
var statusNames = []string{
	"active", "converged", "max-iterations", "inaccurate", "stagnated",
	"indefinite-preconditioner", "indefinite", "breakdown", "canceled", "stopped", "failed", "undecided",
}

// String returns the name of the status, such as "max-iterations".
func (s Status) String() string { return enum.Name(statusNames, s) }

// MarshalText implements encoding.TextMarshaler.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Status) UnmarshalText(b []byte) (err error) {
	*s, err = enum.Parse[Status]("status", statusNames, string(b))
	return err
}

// Column is the outcome of one column.
type Column struct {
	Status     Status // reason why the column ended
	Iterations int    // number of iterations in which the column took part
	// Quantity is the formula of the number that ended the column as Indefinite, IndefinitePreconditioner or Breakdown,
	// such as "pᵀAp", and Value is that number. After SolveBlock pᵀAp and rᵀM⁻¹r belong to a combination of the block's
	// directions, whose scale is arbitrary.
	Quantity string
	Value    float64
}

// History has one row of t entries for every iteration.
type History struct {
	// RelRes[k][j] is the relative recursive residual ‖r_j‖₂/‖y_j‖₂ after k iterations, k = 0, 1, …. The value of
	// a column does not change after the column has ended.
	RelRes [][]float64
	// Alpha[k][j] and Beta[k][j] are α_j and β_j of iteration k+1. Alpha is 0 if the column took no step, and Beta is 0
	// if the column took no step or ended in this iteration. They are those of the Normalized M. SolveBlock leaves both
	// empty.
	Alpha, Beta [][]float64
	// Decrease[k][j] = (‖e_j‖_A² before iteration k+1 − after it)/‖y_j‖₂², with e_j = x−x_j. In Solve it is
	// α_jρ_j/‖y_j‖₂² with ρ_j = r_jᵀM⁻¹r_j.
	Decrease [][]float64
	// ErrorBounds[k][j] is the upper bound of ‖e_j‖_A/‖y_j‖₂ computed after k iterations, or NaN if no valid bound is
	// known. ErrorBounds is nil without Options.LambdaMin.
	ErrorBounds [][]float64
	// Restarts lists, in ascending order, the iteration counts after which columns were restarted from their true
	// residuals.
	Restarts []int
}

// OpStats counts the calls of one kind of operation.
type OpStats struct {
	Calls   int     // number of calls
	Columns int     // total number of columns multiplied in all calls
	Seconds float64 // total time of the calls
}

// Stats counts the expensive operations of a solve.
type Stats struct {
	MulTo   OpStats // products with A
	SolveTo OpStats // solves with M
	Exact   OpStats // products with Options.Exact, for true residuals
	Seconds float64 // time of the whole solve
}

// Result is the answer of Solve and SolveBlock.
type Result struct {
	X          *mat.Dense // n×t
	Status     Status     // the most severe status of the columns, or Canceled, Stopped or Failed
	Iterations int        // number of iterations, including those after restarts
	Tol        float64    // tolerance τ of the solve, or the one that Iteration.Accept set
	RelRes     []float64  // relative recursive residuals ‖r_j‖₂/‖y_j‖₂
	// TrueRelRes is ‖y_j−Ax_j‖₂/‖y_j‖₂ recomputed from X, with Options.Exact if it is set. An entry is NaN if the solve
	// was canceled or failed before the residual was recomputed, and 0 for y_j = 0.
	TrueRelRes []float64
	// R is the recomputed residual Y − AX, with the norms TrueRelRes. It is nil if TrueRelRes has NaN or a restart was
	// undone.
	R *mat.Dense
	// Rounding bounds the error of TrueRelRes if Options.Exact is Bounded; it is nil otherwise.
	Rounding []float64
	// Gap is the residual gap ‖(y_j−Ax_j)−r_j‖₂/‖y_j‖₂ between the true residual, recomputed with Options.Exact, and
	// the recursive residual r_j, to which the error bounds refer. It measures the accumulated error of the products
	// with A. An entry is NaN if one of the residuals is unknown; Gap is nil without Options.LambdaMin.
	Gap     []float64
	Columns []Column // outcome of each column
	History History
	Stats   Stats
}

// MaxTrueRelRes returns the largest of TrueRelRes, or NaN if one of them is NaN.
func (r *Result) MaxTrueRelRes() float64 { return slices.Max(r.TrueRelRes) }

// String describes the outcome of the solve in one line, followed by one line for each column that ended with a
// problem.
func (r *Result) String() string {
	s := fmt.Sprintf("%v after %s: worst residual %.3g (true), %.3g (recurrence), asked %.3g",
		r.Status, plural.Count(r.Iterations, "iteration"), r.MaxTrueRelRes(), slices.Max(r.RelRes), r.Tol)
	if kappa := r.Cond(); kappa >= 1 {
		s += fmt.Sprintf("; κ(M⁻¹A) ≳ %.4g", kappa)
	}
	for j, c := range r.Columns {
		if problem := c.problem(); problem != "" {
			s += fmt.Sprintf("\ncolumn %d, iteration %d: %s", j, c.Iterations, problem)
		}
	}
	return s
}

// problem describes why the column ended without an answer, or returns "" if its status needs no explanation.
func (c Column) problem() string {
	switch c.Status {
	case Indefinite:
		return fmt.Sprintf("%s = %.3g: A is not positive definite", c.Quantity, c.Value)
	case IndefinitePreconditioner:
		if c.Value == 0 {
			return fmt.Sprintf("%s = 0: M⁻¹r is zero, or orthogonal to r", c.Quantity)
		}
		return fmt.Sprintf("%s = %.3g: the preconditioner is not positive definite", c.Quantity, c.Value)
	case Breakdown:
		return fmt.Sprintf("%s = %v is not finite", c.Quantity, c.Value)
	case Stagnated:
		return "the solution does not change any more in working precision"
	case Inaccurate:
		return "the true residual, with its rounding, stays above the tolerance that the recurrence has met"
	}
	return ""
}

// IterationBound returns ⌈(√κ/2)·ln(2/ε)⌉. In exact arithmetic, if κ(M⁻¹A) ≤ κ, then ‖x_k−x‖_A ≤ ε‖x_0−x‖_A after this
// number of iterations for every right-hand side. The bound holds for the A-norm of the error and not for the residual.
// IterationBound panics unless κ ≥ 1 and 0 < ε ≤ 1. Source: Shewchuk (1994), section 9; κ = 3 gives theorem 1 of Avron,
// Clarkson and Woodruff (2017).
func IterationBound(kappa, eps float64) int {
	if !(kappa >= 1) || !(eps > 0 && eps <= 1) {
		panic(fmt.Sprintf("pcg: IterationBound(%v, %v): want κ ≥ 1 and 0 < ε ≤ 1", kappa, eps))
	}
	return int(math.Ceil(math.Sqrt(kappa) / 2 * math.Log(2/eps)))
}
