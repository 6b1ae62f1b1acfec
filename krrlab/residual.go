package krrlab

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/results"
	"github.com/krrlab/lab/krrlab/rng"
)

const (
	exactWork  = 2e10 // n²d up to which AutoResidual recomputes K in any case
	refineWork = 5e11 // n²d up to which it does where the rows checked miss the tolerance
	reach      = 0.05 // share of ‖E‖₂/λ to which K as stored reduces a residual, at worst 1; measured 0.1
	share      = 0.01 // of ‖E‖₂‖y‖₂/λ that ‖Ec‖₂ is at most; measured 0.006 on MNIST
	aim32      = 0.8  // share that it aims at where tiles are float32: on MNIST, n = 20,000, they cost 0.16 of τ = 1e-3
	aim        = 0.97 // share of the tolerance that the recurrence aims at; products with float32 tiles are off by less
)

// residual takes the true residuals r = Y − Ac of c with a.
func (s *solve) residual(ctx context.Context, a *gram.Matrix, c *mat.Dense) error {
	r := mat.DenseCopyOf(c)
	rel, rounding, err := pcg.TrueResidual(ctx, r, a, s.y, c)
	if err == nil {
		s.r, s.sol.TrueResiduals, s.sol.Roundings = r, rel, rounding
	}
	return err
}

// checkRows estimates the true residuals of c, and what those of K as stored are off, from rows of K in float64 (bound.Rows).
func (s *solve) checkRows(ctx context.Context, c *mat.Dense) error {
	return timed(&s.sol.Seconds.Residual, func() error {
		rows := bound.NewRows(s.cfg.Kernel, s.train.X, s.cfg.Lambda, s.cfg.Tol, s.a.Choice(), rng.New(s.cfg.Seed).Sub("residual rows"))
		residual, off, err := rows.Estimate(ctx, s.comm, s.y, c, s.r)
		if err == nil {
			s.sol.SampledRows, s.sol.SampledResiduals, s.sol.StorageResiduals = rows.Len(), residual, off
		}
		return err
	})
}

// within reports whether the residuals are at most τ by the rows checked: as they estimate them, or with
// what they say K as stored is off by, either with its sampling error.
func (s *solve) within() bool {
	slack := bound.Slack(s.train.Len())
	for j, v := range s.sol.TrueResiduals {
		if !(min(v+slack*s.sol.StorageResiduals[j], slack*s.sol.SampledResiduals[j]) <= s.cfg.Tol) {
			return false
		}
	}
	return true
}

// settleSampled takes back that a solve has converged where the rows checked say that it has not.
func (s *solve) settleSampled() {
	if s.sol.Converged() && s.sol.StorageResiduals != nil && !s.within() {
		s.sol.Status = pcg.Inaccurate
	}
}

// finer returns what residuals are taken with to refine an answer of K as stored, and its
// name; nil if nothing is: K in float64, or beside 16-bit tiles K recomputed in the cheapest
// arithmetic whose error is at most what Gram prefers, or, where that takes long, λ/10.
func (l *Lab) finer(ctx context.Context, a *gram.Matrix) (*gram.Matrix, string, error) {
	switch {
	case l.exact():
		return a.Exact(l.exactness()), results.InFloat64, nil
	case l.cfg.Exact == AutoResidual && a.Storage() == gram.Fixed16:
		o := &gram.Options{Storage: gram.Recompute, Comm: l.comm}
		if l.refines() {
			o.Accuracy = l.preferred()
		}
		f, err := gram.New(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, o)
		if err != nil {
			return nil, "", err
		}
		return f, results.Recomputed(f.Choice().Arithmetic), nil
	case l.refines():
		return a.Exact(l.exactness()), results.InFloat64, nil
	}
	return nil, results.AsStored, nil
}
