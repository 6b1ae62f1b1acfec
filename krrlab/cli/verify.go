package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// verifyFlags are the flags of krrlab verify.
type verifyFlags struct {
	modelFlag
	rankFlags
	datasets.ReadOptions
	stageFiles
	Data  string `flag:"data" not:"train|test"`
	Train string `flag:"train" file:"read"`
	Test  string `flag:"test" file:"read" help:"test data, a file of the same form"`
	krrlab.VerifyOptions

	flags *schema.Schema
}

func (verifyFlags) Help() map[string]string {
	return map[string]string{
		"data":   "named data set that the model was fitted on; its test rows are predicted",
		"train":  "file that the model was fitted on; rows that --holdout held out are test data again",
		"target": "target column of a csv file (default: the one of the fit)",
		"json":   "write the results as JSON to this file",
		"plot":   "draw the interval of κ" + formats,
	}
}

func (a *app) verifyCommand() *cobra.Command {
	f := &verifyFlags{rankFlags: rankFlags{comm.DefaultLimit}}
	f.flags = schema.Of(f).Without("task", "drop", "weights", "repeats", "groups", "keep", "dim", "n")
	return withOptions(&cobra.Command{
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
	}, f.flags, func(ctx context.Context, _ []string) error { return a.verify(ctx, f) })
}

func (a *app) verify(ctx context.Context, f *verifyFlags) error {
	if err := cmp.Or(knownData(f.Data), checkPlot(f.Plot)); err != nil {
		return err
	}
	m, err := a.opened(ctx, f.Model, &f.rankFlags, f.flags)
	if err != nil {
		return err
	}
	progress := a.newProgress()
	defer progress.clear()
	o := f.VerifyOptions
	o.Monitor, o.Comm = progress.show, a.group()
	if a.party != nil && o.Memory == 0 { // half of what is available to this rank, upwards: 0 is unknown, not used up
		parts := 2 * int64(a.party.node.Ranks)
		o.Memory = (accel.MemoryAvailable() + parts - 1) / parts
	}
	o.Train, o.Test, err = a.verifyData(ctx, f, m)
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	if err = a.sameData(ctx, o.Train, o.Test); err != nil {
		return err
	}
	v, err := krrlab.Verify(ctx, m, o)
	if err != nil {
		return err
	}
	progress.clear()
	err = a.agree(ctx, a.show(&f.stageFiles, v))
	a.printWrote(14, "", "")
	if err != nil {
		return err
	}
	if v.Residual.Known() && float64(v.Residual)-float64(v.Rounding) > v.Tol {
		again := "--residual exact"
		if v.Claimed != nil && *v.Claimed > v.Tol { // the fit said so
			again = "a larger --max-iter or --lambda"
		}
		a.say("the residual is %.2e, the model was fitted to %g: fit it again with %s", float64(v.Residual), v.Tol, again)
		return errStatus(exitNotConverged)
	}
	return nil
}

// verifyData reads the training and test data as they are.
func (a *app) verifyData(ctx context.Context, f *verifyFlags, m *model.Model) (train, test *datasets.Dataset,
	err error) {
	if kernel.AsPrecomputed(m.Kernel) != nil { // whose file has no features, and which is refused
		return nil, nil, nil
	}
	if f.Data != "" {
		p, err := datasets.Load(ctx, f.Data, &datasets.LoadOptions{Dirs: a.dirs(), Scale: "none"})
		if err != nil {
			return nil, nil, err
		}
		return p.Train, p.Test, nil
	}
	read := func(name string) (*datasets.Dataset, error) {
		if name == "" {
			return nil, nil
		}
		d, err := readFor(ctx, m, name, f.ReadOptions)
		if err == nil && d.Read.Unjudged != "" {
			err = fmt.Errorf("%s: %s", name, strings.TrimPrefix(d.Read.Unjudged, name+": "))
		}
		return d, err
	}
	f.Repeats = "together" // which was the rule of older versions
	if m.Repeats != nil {
		f.Repeats = m.Repeats.Rule
	}
	if f.Groups = m.Origin.Groups; f.Groups != "" {
		f.Repeats = "auto"
	}
	f.MaxRows = m.Origin.Rows
	if train, err = read(f.Train); err != nil {
		return nil, nil, err
	}
	f.Groups, f.MaxRows = "", 0
	if test, err = read(f.Test); err != nil || train == nil || m.Origin.Holdout == 0 || train.Len() < m.Origin.Rows {
		return train, test, err
	}
	kept, held, err := train.Head(m.Origin.Rows).Holdout(m.Origin.Holdout, holdoutSeed)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Train, err)
	}
	return kept, cmp.Or(test, held), nil
}
