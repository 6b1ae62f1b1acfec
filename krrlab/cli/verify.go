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

	flags *schema.Schema // all options of the command; its IsSet reports which of them were set
}

// Help returns the help texts of flags whose tags have none.
func (verifyFlags) Help() map[string]string {
	return map[string]string{
		"data":   "data set that the model was fitted to; its test rows are predicted",
		"train":  "file that the model was fitted to; the rows that were held out by --holdout are test data again",
		"target": "target column of a csv file (default: the target column of the fit)",
		"json":   "write the results as JSON to this file",
		"plot":   "draw the interval of κ to this file" + plotFormats,
	}
}

// verifyCommand returns the command krrlab verify.
func (a *app) verifyCommand() *cobra.Command {
	f := &verifyFlags{rankFlags: rankFlags{comm.DefaultLimit}}
	// The model determines which columns and rows of the files are used, and how they are grouped.
	f.flags = schema.Of(f).Remove("task", "space", "drop", "weights", "repeats", "groups", "keep", "dim", "n")
	return flagCommand(&cobra.Command{
		Use:   "verify MODEL [--data NAME | --train FILE [--test FILE]]",
		Short: "Recompute the proved properties of a model: residual, κ, prediction bound",
		Long: `Verify checks a saved model with simple loops in float64 that do not use the solver. It
computes the residual r = y−(K+λI)c, a guaranteed interval for κ(K+λI), and the bound
|f(x)−f̃(x)| ≤ √k(x,x)·‖r‖/(2√λ) on the predictions, with the share of test labels that this
bound leaves open. The targets are read from the training data, whose first n rows must be
the model's, and not from the model file; for a classifier without training data, they are
recovered from the coefficients. Exit code 3 means that the residual is above
the tolerance of the fit.`,
		Example: `  krrlab verify m.krr --data mnist
  krrlab verify m.krr --train train.csv --test test.csv --target price --json proof.json`,
		Args:        f.takeModelArg,
		Annotations: onRanks,
	}, f.flags, f, a.verify)
}

// verify runs krrlab verify, on all ranks together. It returns the error that sets exitNotConverged if the residual
// exceeds the tolerance of the fit by more than the rounding error of the residual explains.
func (a *app) verify(ctx context.Context, f *verifyFlags) error {
	if err := checkDataName(f.Data); err != nil {
		return err
	}
	if err := a.startRun(ctx, &f.rankFlags, f.flags); err != nil {
		return err
	}
	m, err := a.loadModel(ctx, f.Model, f.VerifyOptions.Memory)
	if err != nil {
		return err
	}
	options := f.VerifyOptions
	options.Monitor, options.Comm = a.show, a.comm()
	if a.ranks != nil { // verification may use half of the memory share of this rank
		options.Memory = accel.AvailableMemory(options.Memory, 2*a.processesHere()).Limit
	}
	options.Train, options.Test, err = a.verifyData(ctx, f, m)
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	if err = a.requireSameData(ctx, options.Train, options.Test); err != nil {
		return err
	}
	verification, err := krrlab.Verify(ctx, m, options)
	if err != nil {
		return err
	}
	err = a.agree(ctx, a.printAndWrite(&f.stageFiles, verification))
	a.printWritten(stageLabelWidth, nil)
	if err != nil {
		return err
	}
	residual, tol := verification.Residual, verification.Tol
	if residual.Known() && float64(residual)-float64(verification.Rounding) > tol {
		remedy := "--residual exact"
		// The fit itself reported a residual above the tolerance.
		if claimed := verification.ClaimedResidual; claimed != nil && *claimed > tol {
			remedy = "a larger --max-iter or --lambda"
		}
		a.warnf("the residual is %.2e, the model was fitted to %g: fit it again with %s", float64(residual), tol,
			remedy)
		return errStatus(exitNotConverged)
	}
	return nil
}

// verifyData reads the training and test data without scaling them. It returns nil for data that the flags do not name,
// and for a model of a precomputed K. It sets the fields of f that say how rows are read and grouped.
//
// If the model was fitted with --holdout and the training file has at least as many rows as then, the rows after these
// are ignored, and the same rows as in the fit are held out: train does not contain them, and they are the test data
// unless --test names others.
func (a *app) verifyData(ctx context.Context, f *verifyFlags, m *model.Model) (train, test *datasets.Dataset,
	err error) {
	if kernel.AsPrecomputed(m.Kernel) != nil { // Verify returns an error for such a model
		return nil, nil, nil
	}
	if f.Data != "" {
		pair, err := datasets.Load(ctx, f.Data, &datasets.LoadOptions{Dirs: a.dirs(), Scale: "none"})
		if err != nil {
			return nil, nil, err
		}
		return pair.Train, pair.Test, nil
	}
	read := func(name string) (*datasets.Dataset, error) {
		if name == "" {
			return nil, nil
		}
		d, err := readForModel(ctx, m, name, f.ReadOptions)
		if err == nil && d.ReadReport.NoAnswersReason != "" { // the targets are missing or invalid
			err = fmt.Errorf("%s: %s", name, strings.TrimPrefix(d.ReadReport.NoAnswersReason, name+": "))
		}
		return d, err
	}
	f.Repeats = "together" // the rule of older versions, whose models do not name it
	setGrouping(&f.ReadOptions, m)
	f.MaxRows = m.Origin.Rows
	if train, err = read(f.Train); err != nil {
		return nil, nil, err
	}
	f.Groups, f.MaxRows = "", 0 // these apply to the training file only
	if test, err = read(f.Test); err != nil || train == nil || m.Origin.Holdout == 0 || train.Len() < m.Origin.Rows {
		return train, test, err
	}
	trainRows, heldOut, err := train.Head(m.Origin.Rows).Holdout(m.Origin.Holdout, holdoutSeed)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Train, err)
	}
	return trainRows, cmp.Or(test, heldOut), nil
}
