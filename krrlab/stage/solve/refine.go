package solve

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// refine takes the answer c to where K itself meets the tolerance: by K as stored, if the rows checked leave enough of
// the tolerance for it, else by what residuals can be taken with. Where they can be taken with nothing else, it refines
// an answer only that ended before K as stored met the tolerance.
func (s *run) refine(ctx context.Context, c *mat.Dense) (*mat.Dense, error) {
	sol := s.sol
	if !s.UsesExactResidual(s.A) && sol.SampledResiduals == nil { // resumed
		if err := s.residual(ctx, s.A, c); err != nil {
			return c, err
		}
		if err := s.checkRows(ctx, c); err != nil {
			return c, err
		}
	}
	o := &pcg.Options{InitX: c}
	finer, kind, enough, err := (*gram.Matrix)(nil), AsStored, false, error(nil)
	if !s.UsesExactResidual(s.A) {
		o.Tol, enough = s.refineTol(s.tol(), bound.Slack(s.Train.Len()), slices.Max(sol.StorageResiduals))
	}
	if !enough {
		if finer, kind, o.Tol, err = s.finer(ctx, true); err != nil ||
			finer == nil && sol.Status != pcg.Stopped && s.saved.answer() == nil {
			return c, err
		}
	}
	s.saved.begin(sol, s.A.Choice(), c, o)
	if known := s.answer(c); known != nil {
		s.known = known.Sizes
	}
	c, err = s.pcg(ctx, o, finer, kind)
	if err != nil || finer != nil && finer.Choice().Certain {
		sol.SampledResiduals, sol.StorageResiduals, sol.SampledRows = nil, nil, 0
		return c, err
	}
	return c, s.checkRows(ctx, c)
}

// finer returns what true residuals are taken with beside K as stored, its name and the tolerance of them; nil if
// nothing is. K in float64 is, where that is cheap (Exact) or K as stored has come short; beside 16-bit tiles in any
// case K recomputed, in the cheapest arithmetic whose error is at most what Gram prefers, or, where that takes long,
// λ/10.
func (s *run) finer(ctx context.Context, short bool) (*gram.Matrix, string, float64, error) {
	tau, fixed := s.tol(), s.Residual == AutoResidual && s.A.Storage() == gram.Fixed16
	switch {
	case s.UsesExactResidual(s.A) || short && !fixed && s.refines(s.A):
		return s.A.Exact(s.RecomputedErrorBound()), InFloat64, tau, nil
	case !fixed:
		return nil, AsStored, tau, nil
	}
	o := &gram.Options{Storage: gram.Recompute, Tiles: s.Tiles, Comm: s.Comm}
	if s.refines(s.A) {
		o.Accuracy = s.PreferredError()
	}
	f, err := gram.New(ctx, s.Kernel, s.Train.X, s.Lambda, o)
	if err != nil {
		return nil, "", 0, err
	}
	if !f.Choice().Certain {
		tau = s.finerTol(tau, f)
	}
	return f, recomputed(f.Choice().Arithmetic), tau, nil
}

// residual takes the true residuals r = Y − Ac of c with a.
func (s *run) residual(ctx context.Context, a *gram.Matrix, c *mat.Dense) error {
	r := mat.DenseCopyOf(c)
	rel, rounding, err := pcg.TrueResidual(ctx, r, a, s.Y, c)
	if err == nil {
		s.r, s.sol.TrueResiduals, s.sol.Roundings = r, rel, rounding
	}
	return err
}

// checkRows estimates the true residuals of c, and what those of K as stored are off, from rows of K in float64
// (bound.Rows).
func (s *run) checkRows(ctx context.Context, c *mat.Dense) error {
	return stage.Timed(&s.sol.Seconds.Residual, func() error {
		rows := bound.NewRows(s.Kernel, s.Train.X, s.Lambda, s.Tol, s.A.Choice(), rng.New(s.Seed).Sub("residual rows"))
		residual, off, err := rows.Estimate(ctx, s.Comm, s.Y, c, s.r)
		if err == nil {
			s.sol.SampledRows, s.sol.SampledResiduals, s.sol.StorageResiduals = rows.Len(), residual, off
		}
		return err
	})
}

// within reports whether the residuals are at most tau by the rows checked: as they estimate them, or with
// their estimate of the error of K as stored, either with its sampling error.
func (s *run) within(tau float64) bool {
	slack := bound.Slack(s.Train.Len())
	for j, v := range s.sol.TrueResiduals {
		if !(min(v+slack*s.sol.StorageResiduals[j], slack*s.sol.SampledResiduals[j]) <= tau) {
			return false
		}
	}
	return true
}

// settleStatus judges an answer whose rows were checked by within, however the iteration ended: it may have aimed lower
// than τ, to leave room for what they find (finerTol). And it takes back that an answer is inaccurate where residuals
// with K in float64 meet τ but for their certain rounding: with an n-th of its square, which errors that are
// independent have, they do.
func (s *run) settleStatus() {
	sol := s.sol
	switch {
	case !s.refinable() && sol.Status != pcg.MaxIterations:
	case sol.StorageResiduals != nil && s.within(s.tol()):
		sol.Status = pcg.Converged
	case sol.StorageResiduals != nil:
		if sol.Converged() && !s.within(s.Tol) {
			sol.Status = pcg.Inaccurate
		}
	case sol.Status == pcg.Inaccurate && sol.Roundings != nil:
		sol.Status = pcg.Undecided
		for j, v := range sol.TrueResiduals {
			if !(v+sol.Roundings[j]/math.Sqrt(float64(s.Train.Len())) <= s.tol()) {
				sol.Status = pcg.Inaccurate
			}
		}
	}
}

// refinable reports whether the iteration has ended because it came to its tolerance or to no more.
func (s *run) refinable() bool {
	return s.sol.Converged() || s.sol.Status == pcg.Inaccurate || s.sol.Status == pcg.Stagnated
}
