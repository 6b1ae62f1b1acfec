package solve

import (
	"context"
	"testing"
)

// solvedContext is a context that is canceled as soon as the solution has residuals.
type solvedContext struct {
	context.Context
	sol *Solution
}

func (c solvedContext) Err() error {
	if c.sol.ResidualKind != "" {
		return context.Canceled
	}
	return nil
}

// TestFourierCanceled checks that a Fourier solve that is canceled before it has computed residuals with K in float64
// reports the residuals with the series.
func TestFourierCanceled(t *testing.T) {
	s, sol := system(func(s *System) { s.Solver, s.Residual = Fourier, ExactResidual }), new(Solution)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the status of the solution is taken from the inner context
	c, err := Run(solvedContext{ctx, sol}, s, nil, sol)
	if c == nil || err != context.Canceled || sol.ResidualKind != ResidualInStored || sol.Roundings != nil {
		t.Errorf("%v: residuals of %q with rounding errors %v", err, sol.ResidualKind, sol.Roundings)
	}
}
