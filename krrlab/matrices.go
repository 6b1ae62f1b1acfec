package krrlab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
)

// gramFactor is what κ(M⁻¹A) may gain where ZᵀZ is formed in float32: M⁻¹ is then that of M to a tenth
// (precond.Options.Fast).
const gramFactor = 1.1 / 0.9

// matrices makes preconditioner number rep, and K where it is not there: after M, when it is known what
// K may take. Where a solve is resumed, K is as it was.
func (s *solve) matrices(ctx context.Context, rep int) (err error) {
	if err := s.prepare(ctx, rep); err != nil || s.a != nil {
		return err
	}
	var held int64
	if w, ok := s.m.(interface{ Bytes() int64 }); ok {
		held = w.Bytes()
	}
	sol := s.sol
	k, err := s.matrix(ctx, held, s.as)
	var full *gram.MemoryError
	if errors.As(err, &full) && s.as != nil {
		return fmt.Errorf("krrlab: the checkpoint in %s has K as %v, and no other goes on from it: %w", s.cfg.Checkpoint.Dir, s.as.Storage, err)
	}
	if err != nil {
		return err
	}
	sol.share(k.shared, "kernel")
	c := k.it.Choice()
	s.a, sol.Storage, sol.Choice = k.it, k.it.Storage().String(), c.String()
	sol.KBound, sol.KBytes = Number(c.Error), k.it.Bytes()
	sol.Seconds.Kernel += k.seconds
	return nil
}

// prepare makes preconditioner number rep.
func (s *solve) prepare(ctx context.Context, rep int) error {
	sol := s.sol
	recipe := s.approximation()
	if recipe == nil {
		start := time.Now()
		var err error
		s.m, err = s.cfg.Precond.Make(ctx, s.Lab, rep)
		sol.Seconds.Factor += time.Since(start).Seconds()
		return comm.Agree(ctx, s.comm, err)
	}
	f, err := s.factor(ctx, recipe, rep)
	if err != nil {
		return err
	}
	sol.share(f.shared, "features")
	sol.Seconds.Features += f.seconds
	if low := f.it.low; low != nil {
		sol.S = low.Rank()
		sol.KappaBound = Number(low.CondBound(s.cfg.Lambda, recipe.lambdaP()) * gramFactor)
	}
	m, what, err := s.inverse(ctx, recipe, rep)
	if err != nil {
		return err
	}
	sol.share(m.shared, what)
	sol.Seconds.Factor += m.seconds
	s.m, sol.Form, sol.StatDim = m.it, m.it.Form().String(), Number(m.it.StatDim())
	return nil
}

// share notes that a stage was taken from an earlier one.
func (s *Solution) share(shared bool, stage string) {
	if shared {
		s.Shared = append(s.Shared, stage)
	}
}

// vectors returns the bytes of the points, the targets and PCG's n×t blocks.
func (l *Lab) vectors() int64 {
	n, _, t := l.Dims()
	return pointBytes(l.train.X) + 8*8*int64(n)*int64(t)
}

// work returns n²d, what it takes to form K.
func (l *Lab) work() float64 {
	n, d, _ := l.Dims()
	return float64(n) * float64(n) * float64(d)
}

// exact reports whether true residuals are taken with K recomputed in float64 from the
// start.
func (l *Lab) exact() bool {
	return l.cfg.Exact == ExactResidual || l.cfg.Exact == AutoResidual && l.work() <= l.cheap
}

// refines reports whether they are where the rows checked miss the tolerance.
func (l *Lab) refines() bool { return l.cfg.Exact == AutoResidual && l.work() <= l.dear }

// finer returns what residuals are taken with to refine an answer of K as stored, and its
// name; nil if nothing is: K in float64, or beside 16-bit tiles K recomputed in the cheapest
// arithmetic whose error is at most what Gram prefers, or, where that takes long, λ/10.
func (l *Lab) finer(ctx context.Context, a *gram.Matrix) (*gram.Matrix, string, error) {
	switch {
	case l.exact():
		return a.Exact(l.exactness()), exactKind, nil
	case l.cfg.Exact == AutoResidual && a.Storage() == gram.Fixed16:
		o := &gram.Options{Storage: gram.Recompute, Comm: l.comm}
		if l.refines() {
			o.Accuracy = l.preferred()
		}
		f, err := gram.New(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, o)
		if err != nil {
			return nil, "", err
		}
		return f, fmt.Sprintf("K recomputed in %v", f.Choice().Arithmetic), nil
	case l.refines():
		return a.Exact(l.exactness()), exactKind, nil
	}
	return nil, storedKind, nil
}
