package cli

import (
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
)

// iterationFlags say how far PCG goes.
type iterationFlags struct {
	tol     float64
	maxIter int
}

func (f *iterationFlags) add(p *pflag.FlagSet, most int) {
	p.Float64Var(&f.tol, "tol", 1e-3, "tolerance τ of ‖y−Ac‖/‖y‖ to which iterations are counted")
	p.IntVar(&f.maxIter, "max-iter", most, "maximum number of iterations")
	wantShare(p, "tol")
	wantAtLeast(p, 1, "max-iter")
}

func (f *iterationFlags) config(c *krrlab.Config) { c.Tol, c.MaxIter = f.tol, f.maxIter }

func addLambdaP(p *pflag.FlagSet, to *float64) {
	p.Float64Var(to, "lambda-p", 0, "ridge λ_p > 0 of the preconditioner (default: λ)")
	wantPositive(p, "lambda-p")
}
