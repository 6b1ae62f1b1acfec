package cost

import (
	"cmp"
	"fmt"

	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
)

// Names of solvers, as flags have them.
const (
	PCG      = "pcg"
	BlockPCG = "block-pcg"
	CG       = "cg"
	Direct   = "direct"
)

// None is the name of M = I.
const None = "none"

// Candidate is a way to solve, and what it is predicted to take.
type Candidate struct {
	Solver  string `json:"solver"`
	Precond string `json:"precond"` // its name
	// Recipe is the name of the preconditioner with its options, as krrlab fit --precond takes it; "": it has no text.
	Recipe     string               `json:"recipe,omitempty"`
	M          stage.Preconditioner `json:"-"` // the preconditioner; nil: M = I, or what Recipe says
	S          int                  `json:"s"`
	LambdaP    float64              `json:"lambda_p"`
	Neighbors  int                  `json:"neighbors,omitempty"` // of a sparse inverse; a guess where Recipe leaves them open
	Storage    gram.Storage         `json:"storage"`
	Iterations int                  `json:"iterations"` // expected by a rule; of direct rounds of refinement
	Seconds    Seconds              `json:"predicted_seconds"`
	Bytes      int64                `json:"predicted_bytes"`
	// Refused says why it cannot be taken; "" of one that can.
	Refused string `json:"refused,omitempty"`
}

// String names the candidate.
func (c *Candidate) String() string {
	if c.Solver == Direct {
		return fmt.Sprintf("direct, %v", c.Storage)
	}
	text := c.Solver + ", " + c.Precond
	if c.Recipe != "" {
		text = c.Solver + ", " + stage.Symbols(c.Recipe)
	}
	return text
}

// Flags are those of krrlab fit that ask for the candidate by name.
func (c *Candidate) Flags() string {
	switch c.Solver {
	case Direct:
		return fmt.Sprintf("--solver direct --storage %v", c.Storage)
	case CG:
		return "--solver cg"
	}
	return fmt.Sprintf("--solver %s --precond %s", c.Solver, safe.Shell(cmp.Or(c.Recipe, c.Precond)))
}

// IterationSeconds returns the seconds of an iteration.
func (c *Candidate) IterationSeconds() float64 { return c.Seconds.Solve / float64(c.Iterations+1) }
