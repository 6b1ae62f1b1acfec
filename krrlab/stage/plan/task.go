package plan

import (
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
)

// Task is the problem (K+λI)C = Y that a way to solve is chosen for, and what of it is held.
type Task struct {
	*stage.Problem
	PreferredError float64 // ‖E‖₂ of K as stored; 0: 20τλ
	MaxDropped     float64 // as in gram.Options
	PointBytes     int64   // bytes of X
	OtherBytes     int64   // bytes that the process holds beside X
	PeakBytes      int64   // the most that it has held
	Tests          int     // points to predict
	ExactResidual  bool    // residuals are taken with K recomputed

	// What is held: zero values leave the choice to the plan.
	Fixed         Fixed
	Tiles         gram.Tiles
	Refined       bool         // as in gram.Options
	IterativeOnly bool         // not direct
	DirectStorage gram.Storage // of the direct solver that a fixed rule takes; Auto: there is none
}

// Held is what a task leaves open no more.
type Fixed struct {
	Solver  string
	Precond stage.Preconditioner // with its options
	S       int                  // rank, of whichever preconditioner is taken
	LambdaP float64              // λ_p, likewise
	Storage gram.Storage
}
