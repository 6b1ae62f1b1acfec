package krrlab

import (
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/solve"
)

// system returns the system and how it is to be solved.
func (l *Lab) system() *solve.System {
	c := l.cfg
	t := &solve.System{
		Kernel: c.Kernel, Train: l.train, Y: l.y, Lambda: c.Lambda, Least: l.leastKnown(), Proved: kernel.BuiltIn(c.Kernel),
		Solver: c.Solver, Tol: c.Tol, MaxIter: c.MaxIter, Storage: c.Storage, RetryFloat64: l.retry,
		Tiles: c.Tiles,
		Seed:  c.Seed, Residual: c.Exact, Policy: l.policy, Stop: c.Stop, StopRows: c.StopRows,
		Comm: l.comm, Monitor: c.Monitor, Plan: l.plan, Checkpoint: c.Checkpoint,
	}
	if c.Memory > 0 {
		t.Memory = max(1, c.Memory-l.pointBytes())
	}
	return t
}
