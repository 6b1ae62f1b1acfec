package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// verifyFlags are the flags of krrlab verify.
type verifyFlags struct {
	modelFlag
	rankFlags
	textFlags
	data, train, test, target string
	stageFiles
	memory string
	passes int
	seed   uint64
}

func (a *app) verifyCommand() *cobra.Command {
	f := &verifyFlags{}
	cmd := &cobra.Command{
		Use:   "verify MODEL [--data NAME | --train FILE [--test FILE]]",
		Short: "Recompute what is proved of a model: residual, κ, prediction bound",
		Long: `Verify checks a saved model by plain loops in float64, independent of the solver. It
recomputes the residual y−(K+λI)c, a certain interval for κ(K+λI), and the bound
|f(x)−f̃(x)| ≤ √k(x,x)·‖r‖/(2√λ) with the share of test labels that it leaves open. A
model file has no targets: they come from the training data, whose first n rows must be
the model's, or, for a classifier, are recovered from the answer itself. Exit code 3 means
that the residual is above the tolerance of the fit.`,
		Example: `  krrlab verify m.krr --data mnist
  krrlab verify m.krr --train train.csv --test test.csv --target price --json proof.json`,
		Args:        f.take,
		Annotations: onRanks,
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context(), cmd.Flags(), f) },
	}
	p := cmd.Flags()
	f.modelFlag.add(p)
	p.StringVar(&f.data, "data", "", "named data set that the model was fitted on; its test rows are predicted")
	p.StringVar(&f.train, "train", "", "file that the model was fitted on; rows that --holdout held out are test data again")
	p.StringVar(&f.test, "test", "", "test data, a file of the same form")
	f.textFlags.add(p)
	p.StringVar(&f.target, "target", "", "target column of a csv file (default: the one of the fit)")
	p.IntVar(&f.passes, "passes", 0, "passes over K for the interval of κ (default: 30 if K fits into the memory, else 3)")
	p.StringVar(&f.memory, "memory", "", "memory that K may take in float64, such as 2GB (default: half of what is available)")
	p.Uint64Var(&f.seed, "seed", 1, "seed of the Lanczos start")
	f.stageFiles.add(p, "the results", "the share of open labels")
	wantAtLeast(p, 1, "passes")
	f.rankFlags.add(p)
	p.SortFlags = false
	return cmd
}

func (f *verifyFlags) check(set *pflag.FlagSet) error {
	switch {
	case f.data != "" && (f.train != "" || f.test != ""):
		return usagef("--data excludes --train and --test")
	case f.data != "" && (f.changed(set) != "" || set.Changed("target")):
		return usagef("--format, --separator, --header, --comment and --target go with --train; --data has its own")
	}
	return cmp.Or(knownData(f.data), checkMemory(f.memory), f.plotFlags.check())
}

func (a *app) verify(ctx context.Context, set *pflag.FlagSet, f *verifyFlags) error {
	if err := f.check(set); err != nil {
		return err
	}
	if err := a.join(ctx, set, &f.rankFlags); err != nil {
		return err
	}
	if err := a.mayWrite(ctx, []namedFile{{"the model", f.model}, {"--train", f.train}, {"--test", f.test}}, f.writes()); err != nil {
		return err
	}
	m, err := model.Load(f.model)
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	progress := a.newProgress()
	defer progress.clear()
	o := krrlab.VerifyOptions{Passes: f.passes, Seed: f.seed, Monitor: progress.show, Comm: a.group()}
	if o.Memory, err = a.verifyMemory(f.memory); err != nil {
		return err
	}
	o.Train, o.Test, err = a.verifyData(ctx, f, m)
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	v, err := krrlab.Verify(ctx, m, o)
	if err != nil {
		return err
	}
	progress.clear()
	a.printf("%s%s", v, a.ranksText())
	if err := a.agree(ctx, a.writeStage(&f.stageFiles, v)); err != nil {
		return err
	}
	a.printWrote(f.json, f.csv, f.plot)
	if v.Residual.Known() && float64(v.Residual)-float64(v.Rounding) > v.Tol {
		if a.first() {
			again := "--residual exact"
			if v.Claimed != nil && *v.Claimed > v.Tol { // the fit said so
				again = "a larger --max-iter or --lambda"
			}
			fmt.Fprintf(a.env.Stderr, "krrlab: the residual is %.2e, the model was fitted to %g: fit it again with %s\n", float64(v.Residual), v.Tol, again)
		}
		return errStatus(exitNotConverged)
	}
	return nil
}

// verifyMemory returns what K may take: by default half of what is available to this rank.
func (a *app) verifyMemory(text string) (int64, error) {
	switch {
	case text != "":
		return memoryLimit(text)
	case a.party != nil:
		parts := 2 * int64(a.party.node.Ranks)
		return (accel.MemoryAvailable() + parts - 1) / parts, nil // upwards: 0 is unknown, not used up
	}
	return 0, nil
}

// verifyData reads the training and test data as they are.
func (a *app) verifyData(ctx context.Context, f *verifyFlags, m *model.Model) (train, test *datasets.Dataset, err error) {
	if kernel.Given(m.Kernel) != nil { // whose file has no features, and which is refused
		return nil, nil, nil
	}
	if f.data != "" {
		p, err := datasets.Load(ctx, f.data, &datasets.LoadOptions{Dirs: a.dirs(), Scale: "none"})
		if err != nil {
			return nil, nil, err
		}
		return p.Train, p.Test, nil
	}
	read := func(name string) (*datasets.Dataset, error) {
		if name == "" {
			return nil, nil
		}
		d, err := readFor(ctx, m, name, f.textFlags, f.target, nil)
		if err != nil {
			return nil, err
		}
		if d.Read.Unjudged != "" {
			return nil, fmt.Errorf("%s: %s", name, d.Read.Unjudged)
		}
		note, err := d.KnownLabels(m.Labels)
		if note != "" {
			d.Read.Notes = append(d.Read.Notes, note)
		}
		return d, err
	}
	if train, err = read(f.train); err != nil {
		return nil, nil, err
	}
	if test, err = read(f.test); err != nil || train == nil || m.Origin.Holdout == 0 || train.Len() < m.Origin.Rows {
		return train, test, err
	}
	kept, held, err := train.Head(m.Origin.Rows).Holdout(m.Origin.Holdout, holdoutSeed)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.train, err)
	}
	return kept, cmp.Or(test, held), nil
}
