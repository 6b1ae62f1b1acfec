package plan

import (
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
)

// Task is the problem (K+λI)C = Y to plan for, with the choices that the user has fixed.
type Task struct {
	*stage.Problem
	PreferredError float64 // preferred bound of ‖E‖₂, where E is the error of the stored K; 0: 20τλ
	MaxDropped     float64 // bound of the 2-norm of the entries that sparse tiles drop (gram.Options.MaxDroppedNorm)
	PointBytes     int64   // bytes of X
	OtherBytes     int64   // bytes that the process occupies in addition to X
	PeakBytes      int64   // peak memory of the process until now
	TestRows       int     // number of points to predict
	ExpectedTol    float64 // tolerance at which iterations are expected to end; 0: Tol
	ExactResidual  bool    // true residuals are computed with K in float64

	Fixed         Fixed // choices that the plan must respect
	Tiles         gram.Tiles
	MayRefine     bool // iterative refinement may follow, so that 16-bit storage of K is allowed
	IterativeOnly bool // exclude the direct solver
	NoSeries      bool // exclude Fourier series
	// DirectStorage is the storage of the direct solver that the fixed rule for few points requires; Auto means that
	// the rule does not apply.
	DirectStorage gram.Storage
}

// totalBudget returns the memory budget of the whole process with nothing in use, because predictions count all memory.
func (t *Task) totalBudget() accel.Budget { return accel.Budget{Limit: t.Memory.Limit} }

// Fixed lists the choices that the user has made. Zero values leave a choice to the plan.
type Fixed struct {
	Solver  string
	Precond stage.Preconditioner // preconditioner and its options
	S       int                  // rank s, for any preconditioner
	LambdaP float64              // ridge λ_p of the preconditioner ZZᵀ+λ_pI, for any preconditioner
	Storage gram.Storage         // storage of K; Auto leaves it to the plan
}
