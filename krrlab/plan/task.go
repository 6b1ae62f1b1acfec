package plan

import (
	"cmp"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// Names of preconditioners and of solvers, as flags have them.
const (
	None       = "none"
	Features   = "features"
	Nystrom    = "nystrom"
	RPCholesky = "rpcholesky"
	Vecchia    = "vecchia"

	PCG      = "pcg"
	BlockPCG = "block-pcg"
	CG       = "cg"
	Direct   = "direct"
)

// Task is the problem (K+λI)C = Y that a way to solve is chosen for, and what of it is held.
type Task struct {
	Kernel     kernel.Kernel
	X          points.Points
	Y          *mat.Dense // n×t
	Lambda     float64
	Tol        float64 // τ
	Prefer     float64 // ‖E‖₂ of K as stored; 0: 20τλ
	Drop       float64 // as in gram.Options
	Seed       uint64
	Memory     int64   // bytes in all; 0: no limit
	PointBytes int64   // of X
	Beside     int64   // bytes that the process holds beside X
	Peak       int64   // the most that it has held
	Ranks      int     // that share the work, each with Memory; 0 means 1
	Tests      int     // points to predict
	ExactWork  float64 // n²d up to which residuals are taken with K recomputed

	// What is held: zero values leave the choice to the plan.
	Solver     string
	Precond    string
	S          int
	LambdaP    float64
	Storage    gram.Storage
	Tiles      gram.Tiles
	NoFeatures bool         // the kernel has no random features
	Iterative  bool         // not direct
	Small      gram.Storage // of the direct solver that a fixed rule takes; Auto: there is none

	n, t int
}

// Candidate is a way to solve, and what it is predicted to take.
type Candidate struct {
	Solver     string       `json:"solver"`
	Precond    string       `json:"precond"`
	S          int          `json:"s"`
	LambdaP    float64      `json:"lambda_p"`
	Neighbors  int          `json:"neighbors,omitempty"` // of a sparse inverse, whose rule finds them, as expected
	Storage    gram.Storage `json:"storage"`
	Iterations int          `json:"iterations"` // expected by a rule; of direct rounds of refinement
	Seconds    Seconds      `json:"predicted_seconds"`
	Bytes      int64        `json:"predicted_bytes"`
	// Refused says why it cannot be taken; "" of one that can.
	Refused string `json:"refused,omitempty"`
}

// String names the candidate.
func (c *Candidate) String() string {
	switch {
	case c.Solver == Direct:
		return fmt.Sprintf("direct, %v", c.Storage)
	case c.Precond == None:
		return c.Solver + " without a preconditioner"
	case c.Precond == Vecchia && c.S == 0:
		return c.Solver + ", sparse inverse"
	case c.Precond == Vecchia:
		return fmt.Sprintf("%s, sparse inverse beside %d pivots", c.Solver, c.S)
	}
	return fmt.Sprintf("%s, %s, s = %d, λ_p = %.3g", c.Solver, c.Precond, c.S, c.LambdaP)
}

// Flags are those of krrlab fit that ask for the candidate by name.
func (c *Candidate) Flags() string {
	f := "--solver " + c.Solver
	switch {
	case c.Solver == Direct:
		return f + " --storage " + c.Storage.String()
	case c.Solver == CG:
		return f
	case c.Precond == None:
		return f + " --precond none"
	case c.Precond == Vecchia && c.S == 0:
		return f + " --precond vecchia"
	case c.Precond == Vecchia:
		return fmt.Sprintf("%s --precond vecchia --features %d", f, c.S)
	}
	return fmt.Sprintf("%s --precond %s --features %d --lambda-p %g", f, c.Precond, c.S, c.LambdaP)
}

// settle checks the task and sets its sizes.
func (t *Task) settle() {
	t.n, t.t = t.Y.Dims()
	t.Tol = cmp.Or(t.Tol, 1e-3)
}
