package krrlab

import "github.com/krrlab/lab/plots"

// String describes the problem and the way to solve it, as configured; nothing is computed.
func (l *Lab) String() string {
	var b lines
	if l.problem == nil {
		return "a laboratory without data; New makes one with them\n"
	}
	c := l.cfg
	_, _, t := l.Dims()
	b.add("data", "%v", l.train)
	b.add("problem", "kernel %v, λ = %g, t = %d", c.Kernel, c.Lambda, t)
	b.add("solver", "%v, τ = %g, at most %d iterations", c.Solver, c.Tol, c.MaxIter)
	switch {
	case l.plain():
	case l.approximation() != nil:
		p := l.approximation()
		s, _ := p.size()
		b.add("preconditioner", "%v, s = %d, λ_p = %g", p, s, p.lambdaP())
	default:
		b.add("preconditioner", "%v", c.Precond)
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
