package solve

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
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

// Solver is a method for solving (K+λI)C = Y.
type Solver int

const (
	// AutoSolver, with the preconditioner Auto{} or nil, means the choice of Plan for n > krrlab.DirectBelow. If there
	// is no plan (fewer points, a Backend), a fixed rule applies:
	//   - PCG if the preconditioner or the storage is set;
	//   - otherwise Direct, in the precision of direct.FasterPrecision, if n ≤ DirectBelow and there are no ranks, no
	//     checkpoints and no Stop by bounds;
	//   - otherwise BlockPCG or PCG according to cost.BlockIsFaster.
	AutoSolver Solver = iota
	// PCG is preconditioned conjugate gradients, Algorithm 1 of the paper of Avron, Clarkson and Woodruff.
	PCG
	// CG is conjugate gradients without a preconditioner.
	CG
	// Direct is a dense Cholesky factorization of K+λI.
	Direct
	// BlockPCG is block conjugate gradients, preconditioned or not. All right-hand sides share one search space, which
	// takes fewer iterations.
	BlockPCG
	// Fourier solves with a Fourier series of a Gaussian or Matérn 5/2 kernel for points in one to three dimensions
	// (package fourier). Its cost grows with the number of modes, and K is never formed.
	Fourier
)

var solverNames = []string{"auto", "pcg", "cg", "direct", "block-pcg", "fourier"}

func (s Solver) String() string { return enum.Name(solverNames, s) }

// MarshalText implements encoding.TextMarshaler.
func (s Solver) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Solver) UnmarshalText(text []byte) (err error) {
	*s, err = enum.Parse[Solver]("solver", solverNames, string(text))
	return err
}

// System is the problem (K+λI)C = Y and the method for solving it. krrlab.Config explains the fields that it shares
// with System.
type System struct {
	Kernel kernel.Kernel
	Train  *datasets.Dataset // training points, and the scaling for StopRows
	Y      *mat.Dense        // right-hand sides, n×t
	Lambda float64           // ridge λ > 0
	// MinEigenvalue is a lower bound of the eigenvalues of K+λI: λ if K is known to be positive semi-definite, and
	// 0 if no positive bound is known.
	MinEigenvalue float64
	// ProvedSemidefinite is true if the kernel is a built-in one, for which K is certainly positive semi-definite.
	ProvedSemidefinite bool

	Solver       Solver
	Tol          float64      // tolerance τ of the relative residual
	MaxIter      int          // largest number of iterations
	Storage      gram.Storage // storage of K; Auto leaves it to the MatrixBuilder
	RetryFloat64 bool         // whether a planned direct solve in float32 that misses τ is repeated in float64
	Tiles        gram.Tiles   // whether K is stored in dense or in sparse tiles
	Memory       accel.Budget // memory budget of a direct solve, in addition to the points
	Seed         uint64       // seed of the random rows and probes of estimates
	Residual     ResidualPolicy
	Policy       Policy            // work that is spent on accuracy, normally DefaultPolicy
	Stop         bound.Stop        // rule that ends the iteration; zero: the tolerance of the residual
	StopRows     *datasets.Dataset // unscaled rows whose labels bound.ByLabels observes; nil: the training rows

	Comm       comm.Comm               // ranks that share the solve
	Monitor    func(stage.Event) error // receives progress, and ends the solve if it returns an error; not nil
	Plan       *plan.Report            // plan that chose the method; nil: none
	Checkpoint *Checkpoint             // nil: the solve saves no state
	// Start has coefficients from which the iteration starts, n×t; nil: from 0. Stop rule anorm always starts from 0,
	// because an iteration from 0 bounds ‖c*‖_A from below; c* is the exact solution. Direct solvers ignore Start.
	Start *mat.Dense
	// StartTrace is an upper bound of λ·tr(A⁻¹)/n, A = K+λI, which stop rule predictions uses instead of an estimate;
	// 0: none.
	StartTrace float64
	// Fingerprint returns a fingerprint of the data and of the configuration that the answer depends on, for
	// checkpoints.
	Fingerprint func() ([sha256.Size]byte, error)
}

// MatrixBuilder makes the stored kernel matrix K̃ and the preconditioner, and describes them in s. If the solve resumes
// from a checkpoint, resumed is the storage of K̃ when the checkpoint was written, and K̃ gets the same storage;
// otherwise resumed is nil.
type MatrixBuilder func(ctx context.Context, resumed *gram.Choice, s *Solution) (Matrices, error)

// Matrices are the matrix of the system and its preconditioner M.
type Matrices struct {
	A         *gram.Matrix       // K̃+λI with the stored kernel matrix K̃
	M         pcg.Preconditioner // nil: M = I
	Landmarks *lowrank.Factor    // factor F of M = FFᵀ+λ_pI; nil unless M is based on landmarks
	LambdaP   float64            // ridge λ_p of M
}

// ErrLate ends a planned solve that takes too long. The direct solver then replaces it.
var ErrLate = errors.New("krrlab: the iteration takes longer than planned")

// columns returns the number of right-hand sides, t.
func (s *System) columns() int {
	_, columns := s.Y.Dims()
	return columns
}

func (s *System) notify(ctx context.Context, event stage.Event) { stage.Notify(ctx, s.Monitor, event) }

// watch returns a function that pcg calls after every iteration. The function sends an event to s.Monitor: the
// residual, the error bound that errorBound returns (errorBound may be nil), and the time left until the residual is
// targetResidual(), as pcg.RemainingIterations predicts it.
//
// The function ends the solve with the error of s.Monitor or of errorBound, or with ErrLate if the plan decides that
// the solve is late (plan.Report.IsLate) after the iterations of this run and iterationsBefore earlier ones. If it
// returns an error on one rank, it does so on all ranks.
func (s *System) watch(ctx context.Context, iterationsBefore int,
	errorBound func(context.Context, *pcg.Iteration) (float64, error),
	targetResidual func() float64) func(*pcg.Iteration) error {
	start, residuals := time.Now(), []float64{1}
	return func(iteration *pcg.Iteration) error {
		event := stage.Event{Stage: stage.Solve, Iteration: iteration.Index, Residual: iteration.MaxRelRes,
			Remaining: -1}
		residuals = append(residuals, iteration.MaxRelRes)
		var err error
		if errorBound != nil {
			event.Bound, err = errorBound(ctx, iteration)
		}
		minRemaining, remaining := pcg.RemainingIterations(residuals, targetResidual())
		if iteration.Index > 2 && !math.IsInf(remaining, 1) { // the first iterations predict too badly
			event.Remaining = time.Duration(min(remaining,
				float64(s.MaxIter-iteration.Index)) * float64(time.Since(start)) / float64(iteration.Index))
		}
		if err == nil && remaining > 0 && s.Plan.IsLate(iterationsBefore+iteration.Index, minRemaining, remaining) {
			err = ErrLate
		}
		if monitorErr := s.Monitor(event); monitorErr != nil {
			err = monitorErr
		}
		return stage.AgreeToStop(ctx, s.Comm, err)
	}
}
