package cli

import (
	"context"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/process"
	"github.com/krrlab/lab/krrlab/stage"
)

// operatorsCommand returns the hidden command that computes products for another program.
func (a *app) operatorsCommand() *cobra.Command {
	f := newLabFlags()
	f.flags = schema.Of(&f).Remove("test", "holdout", "keep", "precond", "features", "lambda-p", "race", "solver",
		"max-iter", "residual", "stop", "json", "csv", "plot", "title", "size")
	return flagCommand(&cobra.Command{
		Use:   "operators (--data NAME | --train FILE)",
		Short: "Compute products with K and M⁻¹ for another program",
		Long: `Operators reads requests from its standard input, and answers them on its standard output,
until the input ends: a line "product" and an array V, n×k, gives KV (without λ), and a line
"solve PRECONDITIONER", such as "solve nystrom features=500", and an array R gives M⁻¹R. The
answer is a line "answer" and an array, or a line "error TEXT". Arrays are float64 in NumPy's
.npy format. The Python package uses this command. K and each M are computed once.`,
		Hidden: true,
	}, f.flags, &f, a.operators)
}

// operators serves requests for products with the kernel matrix K and with the inverses of preconditioners M, one after
// the other, until the input ends. A preconditioner that could not be computed is tried again at the next request.
func (a *app) operators(ctx context.Context, f *labFlags) error {
	a.Quiet = true // standard output carries only the answers
	if err := f.check(); err != nil {
		return err
	}
	load := func(ctx context.Context) (*problemData, error) { return a.loadData(ctx, f) }
	data, cfg, err := a.loadAndConfigure(ctx, f, load)
	if err != nil {
		return err
	}
	lab, err := krrlab.New(data.train, cfg)
	if err != nil {
		return err
	}
	n, _, _ := lab.Dims()
	preconditioners := map[string]pcg.Preconditioner{} // by their text in requests, such as "nystrom features=500"
	return process.Serve(ctx, a.env.Stdin, a.env.Stdout, n, process.Operators{
		"product": func(ctx context.Context, _ string, dst, x *mat.Dense) error {
			k, err := lab.K(ctx)
			if err != nil {
				return err
			}
			return k.KMulTo(ctx, dst, x)
		},
		"solve": func(ctx context.Context, text string, dst, x *mat.Dense) error {
			m, isKnown := preconditioners[text]
			if !isKnown {
				p, err := stage.ParsePreconditioner(text)
				if err != nil {
					return err
				}
				preconditionedLab, err := lab.With(func(c *krrlab.Config) { c.Precond = p })
				if err != nil {
					return err
				}
				if m, err = preconditionedLab.M(ctx); err != nil {
					return err
				}
				preconditioners[text] = m
			}
			if m == nil { // M = I
				dst.Copy(x)
				return nil
			}
			return m.SolveTo(ctx, dst, x)
		},
	})
}
