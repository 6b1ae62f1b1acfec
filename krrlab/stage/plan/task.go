package plan

import (
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
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
	Held      Held
	Tiles     gram.Tiles
	Refined   bool         // as in gram.Options
	Iterative bool         // not direct
	Small     gram.Storage // of the direct solver that a fixed rule takes; Auto: there is none
}

// Held is what a task leaves open no more.
type Held struct {
	Solver  string
	Precond stage.Preconditioner // with its options
	S       int                  // rank, of whichever preconditioner is taken
	LambdaP float64              // λ_p, likewise
	Storage gram.Storage
}
