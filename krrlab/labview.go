package krrlab

import (
	"fmt"

	"github.com/krrlab/lab/plots"
)

// String describes the problem and the way to solve it, as configured; nothing is computed.
func (l *Lab) String() string {
	var b lines
	if l.train == nil {
		return "a laboratory without data; New makes one with them\n"
	}
	c := l.cfg
	_, _, t := l.Dims()
	b.add("data", "%v", l.train)
	b.add("problem", "kernel %v, λ = %g, t = %d", c.Kernel, c.Lambda, t)
	b.add("solver", "%v, τ = %g, at most %d iterations", c.Solver, c.Tol, c.MaxIter)
	switch {
	case c.Solver == Direct || c.Solver == CG || c.Precond == NoPrecond:
	case c.Precond == RandomFeatures:
		b.add("preconditioner", "%v, s = %d, λ_p = %g", c.Map, c.Features, c.LambdaP)
	default:
		b.add("preconditioner", "%v, rank %d, λ_p = %g", c.Precond, c.Features, c.LambdaP)
	}
	memory := "no memory limit"
	if c.Memory > 0 {
		memory = "memory " + Bytes(c.Memory)
	}
	b.add("K", "storage %v, %s", c.Storage, memory)
	b.add("seed", "%d", c.Seed)
	if c.Comm != nil {
		b.add("ranks", "%d", c.Comm.Size())
	}
	return b.String()
}

// HTML shows String in a notebook.
func (l *Lab) HTML() string { return plots.PreHTML(l.String()) }

// String is the report's.
func (s *Solution) String() string {
	if s.lab == nil && s.remote == nil {
		return fmt.Sprintf("a solution without a problem (status %q); Lab.Solve makes one\n", s.Status)
	}
	return s.Report().String()
}

// HTML shows the report and, where the solver iterated, the convergence, in a notebook.
func (s *Solution) HTML() string {
	out := plots.PreHTML(s.String())
	if len(s.History) > 1 {
		out += s.Report().ConvergenceFigure().HTML()
	}
	return out
}
