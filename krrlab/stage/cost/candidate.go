package cost

import (
	"cmp"
	"fmt"

	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
)

// Names of the solvers, as flags spell them.
const (
	PCG      = "pcg"
	BlockPCG = "block-pcg"
	CG       = "cg"
	Direct   = "direct"
	Fourier  = "fourier"
)

// None is the name of the preconditioner M = I.
const None = "none"

// Candidate is a method for solving the problem, with its predicted costs.
type Candidate struct {
	Solver  string `json:"solver"`
	Precond string `json:"precond"` // name of the preconditioner
	// Recipe is the preconditioner with its options, in the form that krrlab fit --precond accepts; "" if the
	// preconditioner cannot be written as a flag.
	Recipe         string               `json:"recipe,omitempty"`
	Preconditioner stage.Preconditioner `json:"-"`        // nil: M = I, or the preconditioner that Recipe describes
	S              int                  `json:"s"`        // rank s: number of features or landmarks; 0: none
	LambdaP        float64              `json:"lambda_p"` // ridge λ_p of M = ZZᵀ+λ_pI; 0: M has none
	// Neighbors is the number of neighbors per point of a sparse inverse M⁻¹. It is a guess if Recipe does not set it.
	Neighbors int `json:"neighbors,omitempty"`
	// Series is the Fourier series of the solver Fourier, Modes the number of its modes, and Work the work of a solve.
	Series  *fourier.Series `json:"-"`
	Work    fourier.Work    `json:"-"`
	Modes   int             `json:"modes,omitempty"`
	Storage gram.Storage    `json:"storage"` // storage of K, or for the direct solver of its factor
	// Iterations is the predicted number of iterations. For the direct solver it is the number of rounds of iterative
	// refinement.
	Iterations int     `json:"iterations"`
	Seconds    Seconds `json:"predicted_seconds"`
	Bytes      int64   `json:"predicted_bytes"`
	// RefusalReason is the reason why the candidate cannot be used; "" if it can.
	RefusalReason string `json:"refused,omitempty"`
}

// String returns the solver with the storage for Direct, the number of modes for Fourier, and otherwise the
// preconditioner.
func (c *Candidate) String() string {
	if c.Solver == Direct {
		return fmt.Sprintf("direct, %v", c.Storage)
	}
	if c.Solver == Fourier {
		return fmt.Sprintf("fourier, %d modes", c.Modes)
	}
	text := c.Solver + ", " + c.Precond
	if c.Recipe != "" {
		text = c.Solver + ", " + stage.FormulaText(c.Recipe)
	}
	return text
}

// Flags returns the flags of krrlab fit that request the solver and its preconditioner by name. The text is quoted for
// a shell. Except for the direct solver, it omits the storage, which fit chooses again.
func (c *Candidate) Flags() string {
	switch c.Solver {
	case Direct:
		return fmt.Sprintf("--solver direct --storage %v", c.Storage)
	case CG, Fourier:
		return "--solver " + c.Solver
	}
	return fmt.Sprintf("--solver %s --precond %s", c.Solver, safe.Shell(cmp.Or(c.Recipe, c.Precond)))
}

// IterationSeconds returns the predicted seconds of one iteration. The initial residual counts as a further iteration.
func (c *Candidate) IterationSeconds() float64 { return c.Seconds.Solve / float64(c.Iterations+1) }
