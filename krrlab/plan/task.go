package plan

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
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
	*stage.Problem
	Prefer float64 // ‖E‖₂ of K as stored; 0: 20τλ
	Drop   float64 // as in gram.Options
	Points int64   // bytes of X
	Beside int64   // bytes that the process holds beside X
	Peak   int64   // the most that it has held
	Tests  int     // points to predict
	Exact  bool    // residuals are taken with K recomputed

	// What is held: zero values leave the choice to the plan.
	Held      Candidate // solver, preconditioner, rank, λ_p, neighbors, storage
	Form      precond.Form
	Tiles     gram.Tiles
	Refined   bool         // as in gram.Options
	Iterative bool         // not direct
	Small     gram.Storage // of the direct solver that a fixed rule takes; Auto: there is none
}

// Candidate is a way to solve, and what it is predicted to take.
type Candidate struct {
	Solver     string       `json:"solver"`
	Precond    string       `json:"precond"`
	S          int          `json:"s"`
	LambdaP    float64      `json:"lambda_p"`
	Neighbors  int          `json:"neighbors,omitempty"` // of a sparse inverse; without pivots, or held by name, a guess
	Storage    gram.Storage `json:"storage"`
	Iterations int          `json:"iterations"` // expected by a rule; of direct rounds of refinement
	Seconds    Seconds      `json:"predicted_seconds"`
	Bytes      int64        `json:"predicted_bytes"`
	// Refused says why it cannot be taken; "" of one that can.
	Refused string `json:"refused,omitempty"`
	Named   string `json:"-"` // flags of a preconditioner that is held by name
}

// String names the candidate.
func (c *Candidate) String() string {
	if c.Solver == Direct {
		return fmt.Sprintf("direct, %v", c.Storage)
	}
	text := c.Solver + ", " + c.Precond
	if c.S > 0 {
		text += fmt.Sprintf(", s = %d", c.S)
	}
	if c.Beside() {
		text += fmt.Sprintf(", %d neighbors", c.Neighbors)
	}
	if c.LambdaP > 0 {
		text += fmt.Sprintf(", λ_p = %.3g", c.LambdaP)
	}
	return text
}

// Beside reports whether it is a sparse inverse beside pivots whose neighbors the plan chooses, and leaves to no rule.
func (c *Candidate) Beside() bool { return c.Precond == Vecchia && c.S > 0 && c.Named == "" }

// Flags are those of krrlab fit that ask for the candidate by name.
func (c *Candidate) Flags() string {
	if c.Solver == Direct {
		return fmt.Sprintf("--solver direct --storage %v", c.Storage)
	}
	text := "--solver " + c.Solver + c.Named
	if c.Named != "" || c.Solver == CG {
		return text
	}
	text += " --precond " + c.Precond
	if c.S > 0 {
		text += fmt.Sprintf(" --features %d", c.S)
	}
	if c.Beside() {
		text += fmt.Sprintf(" --neighbors %d", c.Neighbors)
	}
	if c.LambdaP > 0 {
		text += fmt.Sprintf(" --lambda-p %g", c.LambdaP)
	}
	return text
}
