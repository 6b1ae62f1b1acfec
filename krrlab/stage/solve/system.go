package solve

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// Solver names a way to solve (K+λI)C = Y.
type Solver int

const (
	// AutoSolver, with the preconditioner Auto{} or nil, takes what Plan chooses where n > DirectBelow. Where there is
	// no plan (fewer points, a Backend) it is a fixed rule: PCG where the preconditioner or the storage was
	// set, otherwise Direct, in the precision of direct.Faster, where n ≤ DirectBelow and there are no ranks, no
	// checkpoints and no Stop by bounds, and else BlockPCG or PCG by plan.BlockPays.
	AutoSolver Solver = iota
	// PCG is Algorithm 1 of the paper.
	PCG
	// CG is conjugate gradients without a preconditioner.
	CG
	// Direct is a dense Cholesky factorization of K+λI.
	Direct
	// BlockPCG is block conjugate gradients, preconditioned or not: all right-hand sides
	// search one space together, in fewer iterations.
	BlockPCG
)

var solverNames = []string{"auto", "pcg", "cg", "direct", "block-pcg"}

func (s Solver) String() string { return enum.Name(solverNames, s) }

// MarshalText implements encoding.TextMarshaler.
func (s Solver) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Solver) UnmarshalText(b []byte) (err error) {
	*s, err = enum.Parse[Solver]("solver", solverNames, string(b))
	return err
}

// System is (K+λI)C = Y and how it is to be solved; krrlab.Config has the meaning of what it shares with that.
type System struct {
	Kernel kernel.Kernel
	Train  *datasets.Dataset // its points, and the scaling of StopRows
	Y      *mat.Dense        // n×t
	Lambda float64
	// Least is what the eigenvalues of K+λI are known to be at least: λ, or 0 where K is not known to be positive
	// semi-definite. Proved says that the kernel is a built-in one, of which that is certain.
	MinEigenvalue      float64
	ProvedSemidefinite bool

	Solver       Solver
	Tol          float64
	MaxIter      int
	Storage      gram.Storage
	RetryFloat64 bool // a direct solve in float32, as planned, that comes short is one in float64
	Tiles        gram.Tiles
	Memory       int64 // beside the points, of a direct solve; 0: no limit
	Seed         uint64
	Residual     ResidualPolicy
	Policy       Policy
	Stop         bound.Stop
	StopRows     *datasets.Dataset

	Comm       comm.Comm
	Monitor    func(stage.Event) error
	Plan       *plan.Report // that it follows; nil for none
	Checkpoint *Checkpoint
	// Owner is the fingerprint of the data and of what in the configuration the answer depends on, for checkpoints.
	Owner func() ([sha256.Size]byte, error)
}

// Source makes K, as it was when the state that is resumed was written (nil if none is), and the preconditioner, and
// says in s what they are.
type Source func(ctx context.Context, as *gram.Choice, s *Solution) (Matrices, error)

// Matrices are K+λI and a preconditioner.
type Matrices struct {
	A         *gram.Matrix
	M         pcg.Preconditioner // nil for I
	Landmarks *lowrank.Factor    // of M = FFᵀ+λ_pI, where it is of landmarks
	LambdaP   float64
}

// ErrLate ends a planned solve that goes wrong; the direct solver follows.
var ErrLate = errors.New("krrlab: the iteration takes longer than planned")

// columns returns the number t of right-hand sides.
func (t *System) columns() int {
	_, columns := t.Y.Dims()
	return columns
}

func (t *System) tell(ctx context.Context, e stage.Event) { stage.Tell(ctx, t.Monitor, e) }

// watch returns a monitor that reports the residual and the time left, as pcg.Forecast has it, with the bound of the
// error that enough returns, nil for none; an error of it ends the solve, and so does a plan by which it is late after
// those iterations and the ones done before. On ranks all return an error if one or the Monitor of one does.
func (t *System) watch(ctx context.Context, before int,
	enough func(context.Context, *pcg.Iteration) (float64, error)) func(*pcg.Iteration) error {
	start, residuals := time.Now(), []float64{1}
	return func(it *pcg.Iteration) error {
		e := stage.Event{Stage: stage.Solve, Iteration: it.Index, Residual: it.MaxRelRes, Remaining: -1}
		residuals = append(residuals, it.MaxRelRes)
		low, left := pcg.Forecast(residuals, t.Tol)
		if it.Index > 2 && !math.IsInf(left, 1) {
			e.Remaining = time.Duration(min(left,
				float64(t.MaxIter-it.Index)) * float64(time.Since(start)) / float64(it.Index))
		}
		var err error
		if enough != nil {
			e.Bound, err = enough(ctx, it)
		}
		if err == nil && left > 0 && t.Plan.Late(before+it.Index, low, left) {
			err = ErrLate
		}
		if told := t.Monitor(e); told != nil {
			err = told
		}
		return stage.AgreeToStop(ctx, t.Comm, err)
	}
}
