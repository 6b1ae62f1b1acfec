package krrlab

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
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

// settleStatus takes back that a solve has converged where the rows checked say that it has not, and that it is inaccurate where residuals with K in float64
// meet τ but for their certain rounding: with an n-th of its square, which errors that are independent have, they do.
func (s *solve) settleStatus() {
	sol := s.sol
	switch {
	case sol.Converged() && sol.StorageResiduals != nil && !s.within():
		sol.Status = pcg.Inaccurate
	case sol.Status == pcg.Inaccurate && sol.Roundings != nil && sol.StorageResiduals == nil:
		sol.Status = pcg.Undecided
		for j, v := range sol.TrueResiduals {
			if !(v+sol.Roundings[j]/math.Sqrt(float64(s.train.Len())) <= s.tol()) {
				sol.Status = pcg.Inaccurate
			}
		}
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
		o := &gram.Options{Storage: gram.Recompute, Tiles: l.cfg.Tiles, Comm: l.comm}
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

// beginBounds settles what of an iteration's options is for bounds of the error.
func (s *solve) beginBounds(ctx context.Context, o *pcg.Options) error {
	w := &s.bounds
	w.Basis = s.newBasis(s.known)
	o.LambdaMin = w.Basis.Mu
	w.Stop, w.Tau = s.cfg.Stop, aim*s.cfg.Tol
	if w.Ended = false; o.InitX != s.cfg.Start { // refined by the residual
		w.Stop = bound.Stop{}
	}
	if w.Stop.Rule != bound.Labels || w.Sample != nil {
		return nil
	}
	rows := s.train.X
	if given := s.cfg.StopRows; given != nil {
		scaled, err := s.train.Scaling.Apply(given)
		if err != nil {
			return fmt.Errorf("krrlab: the rows of stop %v: %w", w.Stop, err)
		}
		rows = scaled.X
	}
	var err error
	w.Sample, err = bound.NewSample(ctx, s.cfg.Kernel, s.train.X, rows, w.Stop.Share, rng.New(s.cfg.Seed).Sub("labels"))
	return err
}

// measureStart finds lower bounds of ‖c_j*‖_A by Start, which those of an iteration that begins at 0 are not for.
func (s *solve) measureStart(ctx context.Context) error {
	c := s.cfg.Start
	if c == nil || s.known != nil {
		return nil
	}
	if err := s.residual(ctx, s.a, c); err != nil {
		return err
	}
	rounding, off := make([]float64, s.columns()), 2*s.a.Choice().Error
	for j := range rounding {
		if size := mat.Norm(s.y.ColView(j), 2); size > 0 {
			rounding[j] = off * mat.Norm(c.ColView(j), 2) / size
		}
	}
	e := s.newBasis(nil).Final(&bound.Answer{C: c, Y: s.y, Residuals: s.sol.TrueResiduals, Rounding: rounding})
	s.r, s.sol.TrueResiduals, s.sol.Roundings = nil, nil, nil // they are not of an answer
	if s.known = make([]float64, s.columns()); e != nil {
		s.known = e.Sizes
	}
	return nil
}

// newBasis returns what is known of the problem with K as it is stored, if it is. Products with it are off by as much
// again.
func (s *solve) newBasis(known []float64) *bound.Basis {
	b := &bound.Basis{Lambda: s.leastKnown(), Known: known}
	for j := range s.columns() {
		b.Norms = append(b.Norms, mat.Norm(s.y.ColView(j), 2))
	}
	if s.a != nil {
		b.Off = 2 * s.a.Choice().Error
		if recipe := s.approximation(); s.low != nil {
			b.Mu = bound.LambdaMin(s.low, b.Lambda, recipe.lambdaP, b.Off)
		} else if s.plain() {
			b.Mu = bound.LambdaMin(nil, b.Lambda, 0, b.Off)
		}
	}
	return b
}

// tol returns the tolerance of the residual: τ, or what makes the error in the A-norm at most τ in any case, as
// ‖e‖_A ≤ ‖r‖₂/√λ and ‖c*‖_A ≥ ‖y‖₂/√(λ+tr K).
func (s *solve) tol() float64 {
	if s.cfg.Stop.Rule != bound.ANorm {
		return s.cfg.Tol
	}
	return s.cfg.Tol * math.Sqrt(s.cfg.Lambda/(s.cfg.Lambda+s.a.Trace()))
}

// answer returns the bounds of an answer by what is known of its residuals.
func (s *solve) answer(c *mat.Dense) *bound.Errors {
	sol := s.sol
	a := &bound.Answer{C: c, Y: s.y, Residuals: sol.TrueResiduals, Rounding: sol.Roundings, PCG: sol.Result}
	of, _ := s.base()
	a.Certain = sol.Roundings != nil && kernel.BuiltIn(of)
	if a.Residuals == nil || a.Rounding == nil && sol.StorageResiduals == nil {
		return nil // what K as stored is off is not known
	}
	if a.Rounding == nil {
		a.Rounding = make([]float64, s.columns())
		for j, v := range sol.StorageResiduals {
			a.Rounding[j] = bound.Slack(s.train.Len()) * v
		}
	}
	return s.newBasis(nil).Final(a)
}

// certify sets the bounds of the answer, and which criterion was met.
func (s *solve) certify(ctx context.Context, c *mat.Dense) error {
	sol := s.sol
	if sol.Converged() || sol.Status == pcg.Undecided {
		sol.Criterion = bound.Stop{}.String()
	}
	if sol.Error = s.answer(c); sol.Error == nil {
		return nil
	}
	basis := s.newBasis(nil)
	if s.low != nil {
		if err := sol.Error.Sharpen(ctx, basis, s.m, s.low, s.approximation().lambdaP, s.r, sol.Roundings); err != nil {
			return err
		}
	}
	few, err := s.bounds.Met(ctx, c, sol.Error.Decisions())
	switch {
	case err != nil:
		return err
	case s.cfg.Stop.Rule == bound.ANorm && sol.Error.Relative <= sol.Tol:
		sol.Criterion = "anorm"
	case few:
		sol.Criterion = "labels"
	}
	if s.cfg.Stop.Rule == bound.Labels && s.cfg.StopRows == nil && s.r != nil {
		var f mat.Dense // K c = y − r − λc
		f.Scale(-s.cfg.Lambda, c)
		f.Add(&f, s.y)
		f.Sub(&f, s.r)
		sol.LabelsOf, sol.LabelsOpen = s.train.Len(), bound.Open(&f, bound.Roots(s.cfg.Kernel, s.train.X), sol.Error.Decisions())
	}
	return nil
}
