package krrlab

import (
	"cmp"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// String describes the problem and the way to solve it, as configured; nothing is computed.
func (l *Lab) String() string {
	var b stage.Lines
	if l.problem == nil {
		return "a laboratory without data; New makes one with them\n"
	}
	c := l.cfg
	_, _, t := l.Dims()
	b.Add("data", "%v", l.given)
	saved := ""
	if _, err := kernel.ToSpec(l.cfg.Kernel); err != nil {
		saved = "; its models cannot be saved, as the kernel is not registered (kernel.Register)"
	}
	b.Add("problem", "kernel %v, λ = %g, t = %d%s", c.Kernel, c.Lambda, t, saved)
	b.Add("solver", "%v, τ = %g, at most %s", c.Solver, c.Tol, plural.Count(c.MaxIter, "iteration"))
	switch {
	case l.plain():
	case l.approximation() != nil:
		r := l.approximation()
		b.Add("preconditioner", "%v, s = %d, λ_p = %g", r, r.S, r.LambdaP)
	default:
		b.Add("preconditioner", "%v", c.Precond)
	}
	memory := "no memory limit"
	if c.Memory > 0 {
		memory = "memory " + accel.Bytes(c.Memory)
	}
	b.Add("K", "storage %v, %s", c.Storage, memory)
	b.Add("seed", "%d", c.Seed)
	if c.Comm != nil {
		b.Add("ranks", "%d", c.Comm.Size())
	}
	return b.String()
}

// HTML shows String in a notebook.
func (l *Lab) HTML() string { return plots.PreHTML(l.String()) }

func (l *Lab) header() Header {
	n, d, t := l.Dims()
	k := l.cfg.Kernel
	spec, err := kernel.ToSpec(k)
	if err != nil { // a user-defined kernel
		spec = kernel.Spec{Name: k.String()}
	}
	h := Header{
		Note: cmp.Or(l.note, l.given.Note), Dataset: l.given.Name, Source: l.given.Source, Task: l.given.Task.String(),
		Scaling: l.given.Scaling.String(), Mean: l.coding.Mean, Weighted: l.weighted(), N: n, D: d, T: t,
		Kernel: spec, Lambda: l.cfg.Lambda, Tol: l.cfg.Tol, Seed: l.cfg.Seed,
	}
	if l.given.Read != nil {
		h.Read = []*datasets.Reading{l.given.Read}
	}
	return h
}
