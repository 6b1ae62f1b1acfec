package solve

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// beginBounds settles what of an iteration's options is for bounds of the error.
func (s *run) beginBounds(ctx context.Context, o *pcg.Options) error {
	w := &s.bounds
	w.Basis = s.newBasis(s.known)
	o.LambdaMin = w.Basis.Mu
	w.Stop, w.Tau = s.Stop, s.Policy.Aim*s.Tol
	if w.Ended = false; o.InitX != nil { // refined by the residual
		w.Stop = bound.Stop{}
	}
	if w.Stop.Rule != bound.Labels || w.Sample != nil {
		return nil
	}
	rows := s.Train.X
	if given := s.StopRows; given != nil {
		scaled, err := s.Train.Scaling.Apply(given)
		if err != nil {
			return fmt.Errorf("krrlab: the rows of stop %v: %w", w.Stop, err)
		}
		rows = scaled.X
	}
	var err error
	w.Sample, err = bound.NewSample(ctx, s.Kernel, s.Train.X, rows, w.Stop.Share, rng.New(s.Seed).Sub("labels"))
	return err
}

// newBasis returns what is known of the problem with K as it is stored, if it is. Products with it are off by as much
// again.
func (s *run) newBasis(known []float64) *bound.Basis {
	b := &bound.Basis{Lambda: s.MinEigenvalue, Known: known}
	for j := range s.columns() {
		b.Norms = append(b.Norms, mat.Norm(s.Y.ColView(j), 2))
	}
	if s.A != nil {
		b.Off = 2 * s.A.Choice().Error
		if s.Landmarks != nil || s.M == nil {
			b.Mu = bound.LambdaMin(s.Landmarks, b.Lambda, s.LambdaP, b.Off)
		}
	}
	return b
}

// tol returns the tolerance of the residual: τ, or what makes the error in the A-norm at most τ in any case, as
// ‖e‖_A ≤ ‖r‖₂/√λ and ‖c*‖_A ≥ ‖y‖₂/√(λ+tr K).
func (s *run) tol() float64 {
	if s.Stop.Rule != bound.ANorm {
		return s.Tol
	}
	return s.Tol * math.Sqrt(s.Lambda/(s.Lambda+s.A.Trace()))
}

// answer returns the bounds of an answer by what is known of its residuals.
func (s *run) answer(c *mat.Dense) *bound.Errors {
	sol := s.sol
	a := &bound.Answer{C: c, Y: s.Y, Residuals: sol.TrueResiduals, Rounding: sol.Roundings, PCG: sol.Result,
		Certain: sol.Roundings != nil && s.ProvedSemidefinite}
	if a.Residuals == nil || a.Rounding == nil && sol.StorageResiduals == nil {
		return nil // the error of K as stored is not known
	}
	if a.Rounding == nil {
		a.Rounding = make([]float64, s.columns())
		for j, v := range sol.StorageResiduals {
			a.Rounding[j] = bound.Slack(s.Train.Len()) * v
		}
	}
	return s.newBasis(nil).Final(a)
}

// certify sets the bounds of the answer, and which criterion was met.
func (s *run) certify(ctx context.Context, c *mat.Dense) error {
	sol := s.sol
	if sol.Converged() || sol.Status == pcg.Undecided {
		sol.Criterion = bound.Stop{}.String()
	}
	if sol.Error = s.answer(c); sol.Error == nil {
		return nil
	}
	basis := s.newBasis(nil)
	if s.Landmarks != nil {
		if err := sol.Error.Sharpen(ctx, basis, s.M, s.Landmarks, s.LambdaP, s.r, sol.Roundings); err != nil {
			return err
		}
	}
	few, err := s.bounds.Met(ctx, c, sol.Error.Decisions())
	switch {
	case err != nil:
		return err
	case s.Stop.Rule == bound.ANorm && sol.Error.Relative <= sol.Tol:
		sol.Criterion = "anorm"
	case few:
		sol.Criterion = "labels"
	}
	if s.Stop.Rule == bound.Labels && s.StopRows == nil && s.r != nil {
		var f mat.Dense // K c = y − r − λc
		f.Scale(-s.Lambda, c)
		f.Add(&f, s.Y)
		f.Sub(&f, s.r)
		sol.LabelsOf, sol.LabelsOpen = s.Train.Len(),
			bound.Open(&f, bound.Roots(s.Kernel, s.Train.X), sol.Error.Decisions())
	}
	return nil
}
