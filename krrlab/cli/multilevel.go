package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/feature"
)

func (a *app) multiLevelCommand() *cobra.Command {
	var (
		spec       string
		o          krrlab.MultiLevelOptions
		lambdaP    float64
		iterations iterationFlags
		orthogonal bool
	)
	return a.stageCommand(stageCommand{
		use:   "multilevel (--data NAME | --train FILE)",
		short: "Measure each level of Algorithm 2: wide features, then sketches of them",
		long: `Multilevel measures each level of the chain Z₁ = features, Z₂ = Z₁S₂ᵀ, Z₃ = Z₂S₃ᵀ of
Algorithm 2 of the paper. For each level it gives ‖Z_kZ_kᵀ−K‖₂ and κ(M_k⁻¹A) of the preconditioner
M_k = Z_kZ_kᵀ+λ_pI as intervals, the iterations of the solve, and the seconds to form
Z_k, to factor M_k and to solve, beside features alone of the same widths.`,
		example: `  krrlab multilevel --data mnist --n 10000 --levels features:8000,srht:2000,gaussian:1000
  krrlab multilevel --data ijcnn1 --n 10000 --kernel polynomial --levels features:16000,countsketch:4000,gaussian:2000`,
		add: func(p *pflag.FlagSet) {
			p.StringVar(&spec, "levels", "", "chain of features, then srht, countsketch or gaussian, each with its width (default: features:8s,srht:2s,gaussian:s for s = n/10, at least 500)")
			addConfidence(p, &o.Confidence, "probability that the two intervals of a level cover, in (0, 1)")
			p.Float64Var(&o.Work, "work", 5e12, "flops that setting up one preconditioner may take; of wider levels only the error is measured")
			addLambdaP(p, &lambdaP)
			iterations.add(p, 1000)
			p.BoolVar(&orthogonal, "orthogonal", false, "orthogonal random features")
			wantPositive(p, "work")
		},
		check: func(set *pflag.FlagSet) (err error) {
			if set.Changed("levels") {
				if o.Levels, err = feature.ParseLevels(spec); err != nil {
					return usagef("--levels: %v", err)
				}
			}
			return nil
		},
		cfg: func(_ *pflag.FlagSet, c *krrlab.Config) (err error) {
			iterations.config(c)
			c.Precond, err = krrlab.PrecondSpec{LambdaP: lambdaP, Orthogonal: orthogonal}.Preconditioner(c.Kernel)
			return err
		},
		hint: func() string { return oneLevel(o.Levels) },
		run:  func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) { return l.MultiLevel(ctx, &o) },
	})
}
