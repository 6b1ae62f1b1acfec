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

// Bounded is an Operator that knows how far its products are from those of the matrix that is meant.
type Bounded interface {
	Operator
	// Rounding returns, for every column x of X, a bound of ‖fl(Ax)−Ax‖₂; nil if it has none.
	Rounding(x *mat.Dense) []float64
}

// Preconditioner is a symmetric positive definite n×n matrix M whose inverse can be
// applied.
type Preconditioner interface {
	// Dim returns n.
	Dim() int
	// SolveTo sets dst = M⁻¹·r. Both are n×k with contiguous rows, do not overlap, and
	// k may differ from call to call. For other shapes it fails, or panics.
	SolveTo(ctx context.Context, dst, r *mat.Dense) error
}

// ColumnPreconditioner is a Preconditioner with a separate matrix M_c for each column c of
// B, which Solve then solves M_c⁻¹Ax_c = M_c⁻¹b_c with: many preconditioners compared at the
// price of one product with A for all. SolveBlock, where columns are combined, panics for it.
type ColumnPreconditioner interface {
	Preconditioner
	// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r for c = cols[j]. Both are
	// n×len(cols) with contiguous rows and do not overlap.
	SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error
}

// Options of Solve and SolveBlock. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// Tol is τ: column j has converged when ‖y_j−Ax_j‖₂ ≤ τ‖y_j‖₂. Default 1e-3.
	Tol float64
	// Aim is the share of Tol that the recurrence aims at, in (0, 1]. A little less than 1
	// where products with A are inaccurate saves the restart that a true residual which
	// misses Tol by a rounding error would cost. Default 1.
	Aim float64
	// MaxIter is the most iterations, restarts included. Default 1000.
	MaxIter int
	// InitX is the initial guess, n×t, which costs one product more. Default 0.
	InitX *mat.Dense
	// Monitor, if not nil, is called after every iteration. If it returns an error,
	// Solve ends with Status Stopped and that error, or none if it is ErrStop.
	Monitor func(*Iteration) error
	// Exact is the matrix that the true residual is taken with. Default: A itself. If it is
	// Bounded, Converged takes its rounding into account.
	Exact Operator
	// Refine, in [0, 1), is the share to which products with A can reduce a residual of Exact, some
	// ‖A−Exact‖₂/λ_min: where Tol is less than a tenth of it, the residual is recomputed and the
	// columns are restarted whenever the recurrence has come so far. Default 0: only at Tol.
	Refine float64
	// LambdaMin is a lower bound μ > 0 of the smallest eigenvalue of M⁻¹A, with which every iteration
	// gives an upper bound of the error (History.Error): λ for A = K+λI without M; 1 for
	// M = FFᵀ+λI with FFᵀ ≼ K. It changes no bit of the answer. Default 0: none is known.
	LambdaMin float64
	// Checkpoint, if not nil, is called after every iteration that another follows, and may
	// write the state. If it returns an error, the solve ends with Status Failed and that
	// error.
	Checkpoint func(*State) error
	// Resume is what State.WriteTo wrote in a solve with the same A, M, B and options: the
	// solve continues from there. Stats count from there, InitX is left alone. A state of
	// another shape is an error; that its bytes are whole is for its keeper to check. Default nil: begin.
	Resume []byte
}

// ErrStop is what a Monitor returns to end a solve that has come far enough: it is no error of the solve.
var ErrStop = errors.New("stopped by the monitor")

// Iteration is what a Monitor sees. It and its slice are valid during the call only.
type Iteration struct {
	Index     int       // 1, 2, …
	MaxRelRes float64   // largest of RelRes
	RelRes    []float64 // ‖r_j‖₂/‖y_j‖₂ by recurrence, all t columns
	Error     []float64 // upper bounds of ‖x−x_j‖_A/‖y_j‖₂, see Options.LambdaMin; nil without
	// (‖e_j‖_A² at first − now)/‖y_j‖₂² until the first restart: of ‖x‖_A² at least so much, begun at 0
	Fallen  []float64
	Active  int // columns still iterating
	Restart int // how often columns have been restarted from the true residual

	s *solver
}

// AnswerTo sets dst, n×t, to X as it is now.
func (it *Iteration) AnswerTo(dst *mat.Dense) { dst.Copy(it.s.x) }

// Status says how the solve, or a column of it, ended.
type Status int

// The statuses, in order of increasing severity: the status of a solve is the
// worst of its columns'.
const (
	// Active columns are still iterating; no result of a finished Solve is Active.
	Active Status = iota
	// Converged: the true residual is at most Tol, with its rounding where that is known.
	Converged
	// MaxIterations: it is not, after Options.MaxIter iterations.
	MaxIterations
	// Inaccurate: the recurrence says that the residual is at most Tol, the true one
	// is larger or lies so near to it that rounding hides which, and restarting from it does not help
	// (or there were maxRestarts). Products with A are not accurate enough for Tol, or A and Exact
	// differ too much.
	Inaccurate
	// Stagnated: for stagnantSteps iterations in a row ‖α_jp_j‖₂ ≤ 2⁻⁵³‖x_j‖₂, that
	// is, x_j does not change any more in working precision, and its residual is above
	// Tol. Slow convergence never looks so.
	Stagnated
	// IndefinitePreconditioner: r_jᵀM⁻¹r_j ≤ 0, so M is not positive definite.
	IndefinitePreconditioner
	// Indefinite: p_jᵀAp_j ≤ 0, so A is not positive definite.
	Indefinite
	// Breakdown: a number that is not finite came up.
	Breakdown
	// Canceled: the context ended.
	Canceled
	// Stopped: the monitor returned an error.
	Stopped
	// Failed: A, M or Exact returned an error.
	Failed
	// Undecided: the true residual is at most Tol as it is computed, and its certain rounding hides whether it is.
	// Solve does not return it: who called it may judge an Inaccurate answer so.
	Undecided
)

var statusNames = []string{
	"active", "converged", "max-iterations", "inaccurate", "stagnated",
	"indefinite-preconditioner", "indefinite", "breakdown", "canceled", "stopped", "failed", "undecided",
}

func (s Status) String() string { return enum.Name(statusNames, s) }

// MarshalText implements encoding.TextMarshaler.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Status) UnmarshalText(b []byte) (err error) {
	*s, err = enum.Parse[Status]("status", statusNames, string(b))
	return err
}

// Column says how one column ended.
type Column struct {
	Status     Status
	Iterations int // in which the column took part
	// Curvature is, for Indefinite and Breakdown, the p_jᵀAp_j, and for
	// IndefinitePreconditioner and Breakdown the r_jᵀM⁻¹r_j, that ended the column; after
	// SolveBlock that of a combination of the block's directions, of any scale.
	Curvature float64
}

// History holds what happened in every iteration. Rows have t entries.
type History struct {
	// RelRes[k][j] = ‖r_j‖₂/‖y_j‖₂ by recurrence after k iterations, k = 0, 1, …; a
	// column that has ended keeps its last value.
	RelRes [][]float64
	// Alpha[k][j] and Beta[k][j] are the α_j and β_j of iteration k+1; 0 where the
	// column took no step, or ended with this one (β). SolveBlock leaves them empty.
	Alpha, Beta [][]float64
	// Decrease[k][j] = (‖e_j‖_A² before iteration k+1 − after it)/‖y_j‖₂², e_j = x−x_j: α_jρ_j/‖y_j‖₂².
	Decrease [][]float64
	// Error[k][j] is the upper bound of ‖e_j‖_A/‖y_j‖₂ after k iterations, as it was known then; nil without
	// Options.LambdaMin, NaN where there is none.
	Error [][]float64
	// Restarts are the numbers of iterations after which columns were restarted
	// from their true residual, ascending.
	Restarts []int
}

// Op counts the calls of one operation.
type Op struct {
	Calls   int
	Columns int // columns multiplied, in all calls
	Seconds float64
}

// Stats counts the expensive operations of a solve.
type Stats struct {
	MulTo   Op      // products with A
	SolveTo Op      // solves with M
	Exact   Op      // products with Options.Exact, for true residuals
	Seconds float64 // of the whole solve
}

// Result is the answer of Solve and SolveBlock.
type Result struct {
	X          *mat.Dense // n×t
	Status     Status     // the worst of the columns', or Canceled, Stopped, Failed
	Iterations int
	Tol        float64   // the τ asked
	RelRes     []float64 // ‖r_j‖₂/‖y_j‖₂ by recurrence
	// TrueRelRes is ‖y_j−Ax_j‖₂/‖y_j‖₂ recomputed from X, with Options.Exact if
	// given; NaN if the solve was canceled or failed before that. 0 for y_j = 0.
	TrueRelRes []float64
	// R is Y − AX recomputed, what TrueRelRes is the norms of; nil where that is NaN or a restart
	// was taken back.
	R *mat.Dense
	// Rounding bounds the error of TrueRelRes where Options.Exact is Bounded; nil otherwise.
	Rounding []float64
	// Gap is ‖(y_j−Ax_j)−r_j‖₂/‖y_j‖₂, the residual recomputed with Options.Exact beside that by recurrence, which
	// the bounds of the error are of: the total error of the products with A. NaN where one is unknown; nil
	// without Options.LambdaMin.
	Gap     []float64
	Columns []Column // how each column ended
	History History
	Stats   Stats
}

// MaxTrueRelRes returns the largest true residual of the columns, NaN if one is NaN.
func (r *Result) MaxTrueRelRes() float64 { return slices.Max(r.TrueRelRes) }

// String says in one line how the solve ended, and in one more for every column
// that ended badly why.
func (r *Result) String() string {
	s := fmt.Sprintf("%v after %s: worst residual %.3g (true), %.3g (recurrence), asked %.3g",
		r.Status, plural.Count(r.Iterations, "iteration"), r.MaxTrueRelRes(), slices.Max(r.RelRes), r.Tol)
	if k := r.Cond(); k >= 1 {
		s += fmt.Sprintf("; κ(M⁻¹A) ≳ %.4g", k)
	}
	for j, c := range r.Columns {
		if why := c.why(); why != "" {
			s += fmt.Sprintf("\ncolumn %d, iteration %d: %s", j, c.Iterations, why)
		}
	}
	return s
}

func (c Column) why() string {
	switch c.Status {
	case Indefinite:
		return fmt.Sprintf("pᵀAp = %.3g: A is not positive definite", c.Curvature)
	case IndefinitePreconditioner:
		return fmt.Sprintf("rᵀM⁻¹r = %.3g: the preconditioner is not positive definite", c.Curvature)
	case Breakdown:
		return fmt.Sprintf("a number is not finite (pᵀAp or rᵀM⁻¹r = %v)", c.Curvature)
	case Stagnated:
		return "the solution does not change any more in working precision"
	case Inaccurate:
		return "the true residual, with its rounding, stays above the tolerance that the recurrence has met"
	}
	return ""
}

// IterationBound returns ⌈(√κ/2)·ln(2/ε)⌉, the number of iterations after which
// ‖x_k−x‖_A ≤ ε‖x_0−x‖_A for every right-hand side, in exact arithmetic, if
// κ(M⁻¹A) ≤ κ. It is a bound in the A-norm, not on the residual. It panics unless
// κ ≥ 1 and 0 < ε ≤ 1. Shewchuk (1994), section 9; theorem 1 of the paper with κ = 3.
func IterationBound(kappa, eps float64) int {
	if !(kappa >= 1) || !(eps > 0 && eps <= 1) {
		panic(fmt.Sprintf("pcg: IterationBound(%v, %v): want κ ≥ 1 and 0 < ε ≤ 1", kappa, eps))
	}
	return int(math.Ceil(math.Sqrt(kappa) / 2 * math.Log(2/eps)))
}
