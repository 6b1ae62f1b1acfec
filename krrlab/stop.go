package krrlab

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/rng"
)

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
	a.Certain = sol.Roundings != nil && kernel.BuiltIn(s.cfg.Kernel)
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
	if sol.Converged() {
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
