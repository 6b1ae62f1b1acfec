package krrlab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// solve is a Solve under way.
type solve struct {
	*Lab
	sol    *Solution
	saved  *checkpoints       // nil without
	a      *gram.Matrix       // K+λI, once it is formed
	m      pcg.Preconditioner // the last one made; nil without
	as     *gram.Choice       // how K was kept when the state that is resumed was written; nil if none is
	r      *mat.Dense         // of which the true residuals are the norms
	stop   error              // of the Monitor that stopped the iteration
	low    *lowrank.Factor    // of m, where it is of landmarks
	known  []float64          // lower bounds of ‖c_j*‖_A, where an iteration begins with an answer
	bounds bound.Watch
}

// gramFactor is what κ(M⁻¹A) may gain where ZᵀZ is formed in float32: M⁻¹ is then that of M to a tenth
// (precond.Options.Fast).
const gramFactor = 1.1 / 0.9

// matrices makes preconditioner number rep, and K where it is not there: after M, when it is known what
// K may take. Where a solve is resumed, K is as it was.
func (s *solve) matrices(ctx context.Context, rep int) (err error) {
	if p, ok := s.cfg.Precond.(Vecchia); ok && s.a == nil { // its neighbors are found in K
		if err := s.kernel(ctx, p.bytes(s.train.Len())); err != nil {
			return err
		}
	}
	if err := s.prepare(ctx, rep); err != nil || s.a != nil {
		return err
	}
	var held int64
	if w, ok := s.m.(interface{ Bytes() int64 }); ok {
		held = w.Bytes()
	}
	return s.kernel(ctx, held)
}

// kernel makes K where so many bytes are held beside it.
func (s *solve) kernel(ctx context.Context, held int64) error {
	sol := s.sol
	k, err := s.matrix(ctx, held, s.as)
	if _, full := errors.AsType[*gram.MemoryError](err); full && s.as != nil {
		return fmt.Errorf("krrlab: the checkpoint in %s has K as %v, and no other goes on from it: %w", s.cfg.Checkpoint.Dir, s.as.Storage, err)
	}
	if err != nil {
		return err
	}
	s.share(k.shared, "kernel")
	c := k.it.Choice()
	s.a, sol.Storage, sol.Choice = k.it, k.it.Storage().String(), c.String()
	sol.KBound, sol.KBytes, sol.KWhole = Number(c.Error), k.it.Bytes(), c.Whole
	if p := c.Sparse; p != nil {
		sol.KKept, sol.KDropped = Number(p.Kept), Number(p.Dropped)
	}
	sol.Seconds.Kernel += k.seconds
	return nil
}

// prepare makes preconditioner number rep.
func (s *solve) prepare(ctx context.Context, rep int) error {
	sol := s.sol
	recipe := s.approximation()
	if recipe == nil {
		before := s.v.Inverse
		err := timed(&sol.Seconds.Factor, func() (err error) { s.m, err = s.M(ctx, rep); return err })
		if v, ok := s.m.(*vecchia.Inverse); ok {
			if v == before {
				sol.Seconds.Factor += s.v.seconds
				s.share(true, "factor")
			}
			sol.S, sol.Neighbors, sol.Damping, sol.Features = v.Rank(), v.Neighbors(), v.Damping(), v.What()
		}
		return err
	}
	f, err := s.factor(ctx, recipe, rep)
	if err != nil {
		return err
	}
	s.share(f.shared, "features")
	sol.Seconds.Features += f.seconds
	if s.low = f.it.low; s.low != nil {
		low := s.low
		sol.S = low.Rank()
		sol.KappaBound = Number(low.CondBound(s.cfg.Lambda, recipe.lambdaP) * gramFactor)
	}
	m, what, err := s.inverse(ctx, recipe, rep)
	if err != nil {
		return err
	}
	s.share(m.shared, what)
	sol.Seconds.Factor += m.seconds
	s.m, sol.Form, sol.StatDim = m.it, m.it.Form().String(), Number(m.it.StatDim())
	return nil
}

// share notes that a stage was taken from an earlier one.
func (s *solve) share(shared bool, stage string) {
	if shared {
		s.sol.Shared = append(s.sol.Shared, stage)
	}
}

// timed adds the seconds that f takes to *seconds.
func timed(seconds *float64, f func() error) error {
	t := time.Now()
	err := f()
	*seconds += time.Since(t).Seconds()
	return err
}

// countTraffic returns a function that adds what has been sent since to sol.Ranks.
func (s *solve) countTraffic() func(*pcg.Result) {
	if s.cfg.Comm == nil {
		return func(*pcg.Result) {}
	}
	if s.sol.Ranks == nil {
		s.sol.Ranks = &Ranks{Count: s.comm.Size()}
	}
	w, _ := s.m.(*precond.Woodbury)
	if v, ok := s.m.(*vecchia.Inverse); ok {
		w = v.Woodbury()
	}
	lo, hi := s.featureRows()
	return s.sol.Ranks.Counting(s.a, w, hi-lo)
}

// checkMemory returns an error where what the solve holds beside K is more than it may, and
// names the part that is in the way.
func (l *Lab) checkMemory(ctx context.Context) error {
	ranks := l.comm.Size()
	n, d, t := l.Dims()
	p := plan.Problem{N: n, D: d, T: t, PointBytes: l.pointBytes(), Storage: gram.Recompute}
	if r := l.approximation(); r != nil {
		p.S = r.s
		_, random := r.Preconditioner.(Features)
		p.Landmarks = !random
	} else if v, ok := l.cfg.Precond.(Vecchia); ok {
		p.S, p.Landmarks, p.Neighbors = v.S, v.S > 0, v.most(n)
	}
	var err error
	if m := plan.Of(p, ranks); l.cfg.Memory > 0 && m.Most > l.cfg.Memory {
		who := "the solve"
		if ranks > 1 {
			who = fmt.Sprintf("each of %d ranks", ranks)
		}
		err = fmt.Errorf("krrlab: %s would hold %s beside K, the limit is %s: %s", who, accel.Bytes(m.Most), accel.Bytes(l.cfg.Memory), m.Reason())
	}
	return comm.Agree(ctx, l.comm, err)
}
