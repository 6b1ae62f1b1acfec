package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/feature"
)

// multiLevelFlags are the options of krrlab multilevel.
type multiLevelFlags struct {
	Levels     feature.Levels `flag:"levels" help:"chain of features, then srht, countsketch or gaussian, each with its width (default: features:8s,srht:2s,gaussian:s for s = n/10, at least 500)"`
	Confidence float64        `flag:"confidence" default:"0.95" check:"(0,1)" help:"probability that the two intervals of a level cover, in (0, 1)"`
	Work       float64        `flag:"work" default:"5e12" check:"positive" help:"flops that setting up one preconditioner may take; of wider levels only the error is measured"`
}

func (a *app) multiLevelCommand() *cobra.Command {
	f := &multiLevelFlags{}
	return a.stageCommand(stageCommand{
		use:   "multilevel (--data NAME | --train FILE)",
		short: "Measure each level of Algorithm 2: wide features, then sketches of them",
		long: `Multilevel measures each level of the chain Z₁ = features, Z₂ = Z₁S₂ᵀ, Z₃ = Z₂S₃ᵀ of
Algorithm 2 of the paper. For each level it gives ‖Z_kZ_kᵀ−K‖₂ and κ(M_k⁻¹A) of the preconditioner
M_k = Z_kZ_kᵀ+λ_pI as intervals, the iterations of the solve, and the seconds to form
Z_k, to factor M_k and to solve, beside features alone of the same widths.`,
		example: `  krrlab multilevel --data mnist --n 10000 --levels features:8000,srht:2000,gaussian:1000
  krrlab multilevel --data ijcnn1 --n 10000 --kernel polynomial --levels features:16000,countsketch:4000,gaussian:2000`,
		options: f, flags: "lambda-p orthogonal tol max-iter", tol: 1e-3,
		hint: func() string { return oneLevel(f.Levels) },
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
			return l.MultiLevel(ctx, &krrlab.MultiLevelOptions{Levels: f.Levels, Confidence: f.Confidence,
				Work: f.Work})
		},
	})
}
