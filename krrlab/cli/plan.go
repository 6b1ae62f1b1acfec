package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab"
)

func (a *app) planCommand() *cobra.Command {
	f := newFitFlags("out", "calibrate", "warm", "tune", "ard", "checkpoint", "checkpoint-every", "resume",
		"rank-timeout")
	f.flags.Lookup("json").Help = "write the plan as JSON to this file"
	f.flags.Lookup("plot").Help = "draw predicted seconds against the rank" + formats
	return withOptions(&cobra.Command{
		Use:   "plan (--data NAME | --train FILE [--test FILE | --holdout SHARE])",
		Short: "Predict seconds and memory of every way to fit, and choose one",
		Long: `Plan takes the flags of krrlab fit for data, kernel and solver. It prints the solver,
preconditioner, rank and λ_p that fit would choose, the predicted seconds of each stage, the
runner-up, and what would change the choice. Seconds are predicted from the rates of this machine,
which are measured once, in 0.2 s, and kept in the user's cache folder. Iterations are those that a
rule expects; fit observes them, and goes over to the direct solver where that would be done sooner.
What a flag sets holds for all candidates. Nothing is solved.`,
		Example: `  krrlab plan --data mnist --n 20000
  krrlab plan --train train.csv --target price --sigma 2 --json plan.json --plot plan.svg`,
		Args: noArgs,
	}, f.flags, func(ctx context.Context, _ []string) error { return a.plan(ctx, f) })
}

func (a *app) plan(ctx context.Context, f *fitFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	progress := a.newProgress()
	defer progress.clear()
	data, cfg, err := a.prepare(ctx, f, progress)
	if err != nil {
		return err
	}
	lab, err := krrlab.New(data.train, cfg)
	if err != nil {
		return err
	}
	p, err := lab.Plan(ctx, planOptions(data))
	if err != nil {
		return err
	}
	p.Note = data.note
	progress.clear()
	if err := a.writeStage(&f.stageFiles, p); err != nil {
		return err
	}
	a.printf("%s", p)
	a.printWrote(f.flags)
	return nil
}

func planOptions(data *loaded) (o krrlab.PlanOptions) {
	if data.test != nil {
		o.Tests = data.test.Len()
	}
	return o
}
