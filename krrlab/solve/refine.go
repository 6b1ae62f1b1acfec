package solve

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
)

// refine takes the answer c to where K itself meets the tolerance: by K as stored, if the rows checked leave enough of
// the tolerance for it, else by what residuals can be taken with. Where they can be taken with nothing else, it refines
// an answer only that ended before K as stored met the tolerance.
func (s *run) refine(ctx context.Context, c *mat.Dense) (*mat.Dense, error) {
	sol, tau := s.sol, s.tol()
	if s.Exact(s.A) {
		o := &pcg.Options{InitX: c, Tol: tau}
		s.saved.begin(sol, s.A.Choice(), c, o)
		return s.pcg(ctx, o, s.exactMatrix(), InFloat64)
	}
	if sol.SampledResiduals == nil { // resumed
		if err := s.residual(ctx, s.A, c); err != nil {
			return c, err
		}
		if err := s.checkRows(ctx, c); err != nil {
			return c, err
		}
	}
	o := &pcg.Options{InitX: c}
	var finer *gram.Matrix
	var enough bool
	kind := AsStored
	if o.Tol, enough = s.refineTol(tau, bound.Slack(s.Train.Len()), slices.Max(sol.StorageResiduals)); !enough {
		var err error
		if finer, kind, err = s.finer(ctx); err != nil ||
			finer == nil && sol.Status != pcg.Stopped && s.saved.answer() == nil {
			return c, err
		}
		if o.Tol = tau; finer != nil && !finer.Choice().Certain {
			o.Tol = s.finerTol(tau, finer)
		}
	}
	s.saved.begin(sol, s.A.Choice(), c, o)
	if known := s.answer(c); known != nil {
		s.known = known.Sizes
	}
	c, err := s.pcg(ctx, o, finer, kind)
	if err != nil || finer != nil && finer.Choice().Certain {
		sol.SampledResiduals, sol.StorageResiduals, sol.SampledRows = nil, nil, 0
		return c, err
	}
	return c, s.checkRows(ctx, c)
}

// finer returns what residuals are taken with to refine an answer of K as stored, and its
// name; nil if nothing is: K in float64, or beside 16-bit tiles K recomputed in the cheapest
// arithmetic whose error is at most what Gram prefers, or, where that takes long, λ/10.
func (s *run) finer(ctx context.Context) (*gram.Matrix, string, error) {
	long := !s.refines(s.A)
	switch {
	case s.Residual == AutoResidual && s.A.Storage() == gram.Fixed16:
		o := &gram.Options{Storage: gram.Recompute, Tiles: s.Tiles, Comm: s.Comm}
		if !long {
			o.Accuracy = s.Preferred()
		}
		f, err := gram.New(ctx, s.Kernel, s.Train.X, s.Lambda, o)
		if err != nil {
			return nil, "", err
		}
		return f, recomputed(f.Choice().Arithmetic), nil
	case long:
		return nil, AsStored, nil
	}
	return s.A.Exact(s.Exactness()), InFloat64, nil
}

// exactMatrix returns K+λI recomputed where true residuals are taken with it from the start, else nil.
func (s *run) exactMatrix() *gram.Matrix {
	if !s.Exact(s.A) {
		return nil
	}
	return s.A.Exact(s.Exactness())
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

// within reports whether the residuals are at most τ by the rows checked: as they estimate them, or with
// their estimate of the error of K as stored, either with its sampling error.
func (s *run) within() bool {
	slack := bound.Slack(s.Train.Len())
	for j, v := range s.sol.TrueResiduals {
		if !(min(v+slack*s.sol.StorageResiduals[j], slack*s.sol.SampledResiduals[j]) <= s.Tol) {
			return false
		}
	}
	return true
}

// settleStatus takes back that a solve has converged where the rows checked say that it has not, and that it is
// inaccurate where residuals with K in float64 meet τ but for their certain rounding: with an n-th of its square, which
// errors that are independent have, they do.
func (s *run) settleStatus() {
	sol := s.sol
	switch {
	case sol.Converged() && sol.StorageResiduals != nil && !s.within():
		sol.Status = pcg.Inaccurate
	case sol.Status == pcg.Inaccurate && sol.Roundings != nil && sol.StorageResiduals == nil:
		sol.Status = pcg.Undecided
		for j, v := range sol.TrueResiduals {
			if !(v+sol.Roundings[j]/math.Sqrt(float64(s.Train.Len())) <= s.tol()) {
				sol.Status = pcg.Inaccurate
			}
		}
	}
}
