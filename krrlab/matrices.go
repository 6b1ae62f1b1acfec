package krrlab

import (
	"context"
	"errors"
	"fmt"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/solve"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// gramFactor is what κ(M⁻¹A) may gain where ZᵀZ is formed in float32: M⁻¹ is then that of M to a tenth
// (precond.Options.Fast).
const gramFactor = 1.1 / 0.9

// matrices implements solve.Source. K is made after M, when it is known what K may take; before
// it for an M that is made of K.
func (l *Lab) matrices(ctx context.Context, as *gram.Choice, sol *Solution) (m solve.Matrices, err error) {
	p, first := l.cfg.Precond.(ofK)
	if first {
		if m.A, err = l.kernel(ctx, p.bytes(l.train.Len()), as, false, sol); err != nil {
			return m, err
		}
	}
	if err = l.prepare(ctx, sol, &m); err == nil && !first {
		var held int64
		if w, ok := m.M.(interface{ Bytes() int64 }); ok {
			held = w.Bytes()
		}
		m.A, err = l.kernel(ctx, held, as, l.cfg.Exact == AutoResidual, sol)
	}
	return m, err
}

// ofK is a Preconditioner that is made of K, with the bytes that it takes for n points at most.
type ofK interface{ bytes(n int) int64 }

// kernel makes K where held bytes are kept beside it.
func (l *Lab) kernel(ctx context.Context, held int64, as *gram.Choice, refined bool,
	sol *Solution) (*gram.Matrix, error) {
	k, err := l.matrix(ctx, held, as, refined)
	if _, full := errors.AsType[*gram.MemoryError](err); full && as != nil {
		return nil, fmt.Errorf("krrlab: the checkpoint in %s has K as %v, and no other storage resumes it: %w",
			l.cfg.Checkpoint.Dir, as.Storage, err)
	}
	if err != nil {
		return nil, err
	}
	share(sol, k.shared, "kernel")
	c := k.a.Choice()
	sol.Storage, sol.Choice = k.a.Storage().String(), c.String()
	sol.KBound, sol.KBytes, sol.KWhole = Number(c.Error), k.a.Bytes(), c.Whole
	if p := c.Sparse; p != nil {
		sol.KKept, sol.KDropped = Number(p.Kept), Number(p.Dropped)
	}
	sol.Seconds.Kernel += k.seconds
	return k.a, nil
}

// prepare makes the preconditioner.
func (l *Lab) prepare(ctx context.Context, sol *Solution, to *solve.Matrices) error {
	of := l.approximation()
	if of == nil {
		err := stage.Timed(&sol.Seconds.Factor, func() (err error) { to.M, err = l.M(ctx); return err })
		if v, ok := to.M.(*vecchia.Inverse); ok {
			if share(sol, l.v.shared, "factor"); l.v.shared {
				sol.Seconds.Factor += l.v.seconds
			}
			sol.S, sol.Neighbors, sol.Damping, sol.Features = v.Rank(), v.Neighbors(), v.Damping(), v.What()
		}
		return err
	}
	f, err := l.factor(ctx, of)
	if err != nil {
		return err
	}
	share(sol, f.shared, "features")
	sol.Seconds.Features += f.seconds
	to.LambdaP, to.Low = of.LambdaP+f.a.More, f.a.Low
	if sol.LambdaP = Number(to.LambdaP); to.Low != nil {
		sol.S = to.Low.Rank()
		sol.KappaBound = Number(to.Low.CondBound(l.cfg.Lambda, to.LambdaP) * gramFactor)
	}
	m, err := l.inverse(ctx, of)
	if err != nil {
		return err
	}
	share(sol, m.shared, "factor")
	sol.Seconds.Factor += m.seconds
	to.M, sol.Form, sol.StatDim = m.a, m.a.Form().String(), Number(m.a.StatDim())
	return nil
}

// share notes that a part of the work was taken from an earlier stage.
func share(sol *Solution, shared bool, part string) {
	if shared {
		sol.Shared = append(sol.Shared, part)
	}
}

// method returns the configured preconditioner as package plan has it, and its form.
func (l *Lab) method() (c plan.Candidate, form precond.Form) {
	c.Precond = l.precondName()
	if r := l.approximation(); r != nil {
		c.S, c.LambdaP, form = r.S, r.LambdaP, r.Form
	} else if v, ok := l.cfg.Precond.(Vecchia); ok {
		c.S, c.Neighbors, form = v.S, v.Neighbors, precond.FormLInv
	}
	return c, form
}

// checkMemory returns an error where what the solve holds beside K is more than it may, and
// names the part that is in the way.
func (l *Lab) checkMemory(ctx context.Context) error {
	ranks := l.comm.Size()
	n, d, t := l.Dims()
	c, form := l.method()
	if c.Storage = gram.Recompute; c.Precond == plan.Vecchia {
		c.Neighbors = l.cfg.Precond.(Vecchia).most(n)
	}
	var err error
	m := plan.Cost{N: n, D: d, T: t, Ranks: ranks, PointBytes: l.pointBytes(), Form: form}.Memory(&c)
	if l.cfg.Memory > 0 && m.Most > l.cfg.Memory {
		who := "the solve"
		if ranks > 1 {
			who = fmt.Sprintf("each of %d ranks", ranks)
		}
		err = fmt.Errorf("krrlab: %s would hold %s beside K, the limit is %s beside the program: %s", who, accel.Bytes(m.Most),
			accel.Bytes(l.cfg.Memory), m.Reason())
	}
	return comm.Agree(ctx, l.comm, err)
}
