package cli

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/solve"
	"github.com/krrlab/lab/plots"
)

// fitFlags are the flags of krrlab fit.
type fitFlags struct {
	labFlags
	checkpointFlags
	Extend    string `flag:"extend" file:"read" with:"train" not:"tune|data|holdout|matrix|folds"`
	Tune      bool   `flag:"tune"`
	Distance  string `flag:"distance" in:"tune" default:"auto" with:"tune" check:"one of auto sigma lengths full"`
	Metric    string `flag:"metric" default:"auto" check:"one of auto error auc logloss balanced-error f1 rmse"`
	Threshold string `flag:"threshold" default:"0"`
	Folds     int    `flag:"folds" check:">=2"`
	PlotSolve string `flag:"plot-solve" in:"plot solve" file:"picture"`
	Out       string `flag:"out" file:"write" help:"write the model to this file"`
	Verbose   bool   `flag:"verbose"`
	Calibrate string `flag:"calibrate" default:"auto" check:"one of auto test loo none"`
}

// Help returns the help texts of flags whose tags have none.
func (fitFlags) Help() map[string]string {
	return map[string]string{
		"extend": "model to which the rows of --train are appended: the rows of its fit stay, with its kernel, λ, " +
			"scaling, columns and labels, and the solve starts from its coefficients",
		"tune": "choose kernel, σ and λ by leave-one-out, except those that are set; --tune=distance=D says what " +
			"distance: sigma, lengths, full or auto (krrlab tune); without it a quick search chooses them on 500 rows",
		"lambda": "ridge λ > 0 (default: the registry's for --data, or chosen by the quick search, or 0.01 with " +
			"--sigma)",
		"calibrate": "errors to save in the model for intervals and probabilities of krrlab predict: test, of the test " +
			"rows; loo, leave-one-out (factors K again); none; or auto: test if there are test rows",
		"metric": "quantity that --tune and --threshold optimize: auto, or see krrlab tune",
		"threshold": "for two classes, the number that f(x) is compared with, or auto: the best for --metric by " +
			"leave-one-out (default: auto with --metric f1 or balanced-error)",
		"verbose": "print the whole report (default: for --data, and if the solve misses the tolerance)",
		"folds":   "cross-validate kernel and λ of the fit on the training rows, in this many folds",
		"json":    "write the report as JSON to this file",
		"plot": "draw " + qualityText + " of the test rows, or else of training rows, to this file" + plotFormats +
			", solve=FILE for the convergence of the solve",
	}
}

// plannedHelp returns the help texts of flags for commands in which the plan chooses the method.
func plannedHelp() map[string]string {
	return map[string]string{
		"precond": "preconditioner and its options, such as 'nystrom features=500 lambda-p=0.1': " +
			strings.Join(stage.KindNames(),
				", ") + "; 'auto race=NAME …' tries others side by side; 'process:COMMAND " +
			"process-timeout=20m' waits longer for its answers (default: auto, chosen by a plan)",
	}
}

// newFitFlags returns the flags of krrlab fit with their defaults.
func newFitFlags() *fitFlags {
	f := &fitFlags{labFlags: newLabFlags()}
	f.PrecondSpec.Name = "auto"
	f.flags = schema.Of(f).Remove("keep", "features", "lambda-p").SetHelp(plannedHelp())
	return f
}

// fitCommand returns the command krrlab fit.
func (a *app) fitCommand() *cobra.Command {
	f := newFitFlags()
	return flagCommand(&cobra.Command{
		Use:   "fit (--data NAME | --train FILE [--test FILE | --holdout SHARE])",
		Short: "Fit a model, test it on test data, save it",
		Long: `Fit reads a table, solves (K+λI)c = y for its rows, and tests the model on the test rows. Only
--train or --data is needed: the kernel, λ and the method are chosen unless flags name them.

For classes, y and c have one column per class with ±1 coding (one column for two classes).
For a regression, the mean of y is subtracted first, and the model adds it to its
predictions. The same model in scikit-learn is KernelRidge with alpha = λ, fitted to the
targets minus their mean; the Gaussian kernel is kernel="rbf" with gamma = 1/(2σ²).

Exit code 3 means that the solve did not reach the tolerance within --max-iter; all results
are still written. --extend m.krr appends the rows of --train to those of the fit of a model. The result is that
of a fit of all rows; kernel, λ, scaling, columns, words and labels are those of the model.

If mpirun, mpiexec or srun starts the command, all ranks run it together,
and rank 0 prints and writes the results. --resume continues an interrupted run from its
--checkpoint, on any number of ranks, and gives the same coefficients.`,
		Example: `  krrlab fit --train train.csv --target price --holdout 0.2
  krrlab fit --train train.csv --target price --drop id --categorical city,kind --impute median \
      --holdout 0.2 --tune --out m.krr --plot fit.svg
  krrlab fit --data mnist --sigma 8.5 --lambda 0.01 --solver pcg --precond 'features features=6000 lambda-p=0.1'
  mpirun -n 8 krrlab fit --data mnist --precond 'auto features=6000' --checkpoint run1 --resume`,
		Annotations: onRanks,
	}, f.flags, f, a.fit)
}

// fit runs krrlab fit: it solves the problem, calibrates the model if it is to be saved, and writes the results. If the
// solution is too inaccurate for the leave-one-out errors of --calibrate loo, fit writes the results without them, and
// then returns that error.
func (a *app) fit(ctx context.Context, f *fitFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	result, err := a.solve(ctx, f)
	if err != nil {
		return err
	}
	var calibrationErr error
	if f.Out != "" {
		err := a.calibrate(ctx, f.Calibrate, f.Memory, result)
		if errors.Is(err, interval.ErrUnsolved) {
			calibrationErr, err = err, nil // write the report and the model nevertheless, on all ranks
		}
		if err = a.agree(ctx, err); err != nil {
			return err
		}
	}
	if f.Plot != "" { // a figure that cannot be drawn ends the command before anything is written
		if err = a.agree(ctx, result.plotPredictions(ctx)); err != nil {
			return err
		}
	}
	err = a.writeResults(ctx, f, result)
	if _, isStatus := errors.AsType[errStatus](err); isStatus && calibrationErr != nil {
		a.warnf("--calibrate loo: %v", calibrationErr)
	}
	return cmp.Or(err, a.agree(ctx, calibrationErr))
}

// writeResults writes the files that the flags name and prints the report. After an error it still writes the
// remaining files and prints the report, and then returns the first error. If the solve reached the tolerance and all
// files were written, writeResults removes the checkpoints. All ranks call it together.
func (a *app) writeResults(ctx context.Context, f *fitFlags, r *fitResult) error {
	err := a.writeOutput(f.Out, r.sol.Model.Save)
	err = cmp.Or(err, a.writeStage(&f.stageFiles, r.sol, r.plot))
	err = cmp.Or(err, a.writeOutput(f.PlotSolve, func(file string) error { return f.save(r.sol.Plot(), file) }))
	if err == nil && r.sol.CriterionMet() && a.isFirstRank() {
		err = r.sol.RemoveCheckpoints()
	}
	return cmp.Or(a.agree(ctx, err), a.reportFit(f, r))
}

// solve loads the data, solves the problem and tests the model. Before that it chooses kernel and λ by a search, with
// --tune or if they are not known (searchesKernel).
func (a *app) solve(ctx context.Context, f *fitFlags) (*fitResult, error) {
	start := time.Now()
	data, cfg, err := a.loadAndConfigure(ctx, &f.labFlags, func(ctx context.Context) (*problemData, error) {
		if f.Extend != "" {
			return a.loadExtended(ctx, f)
		}
		data, err := a.loadData(ctx, &f.labFlags)
		if err == nil && data.test == nil && f.Train != "" && data.kernel == nil {
			data.addHint("there are no test data: --test FILE, or --holdout 0.2, shows how well the model predicts")
		}
		return data, err
	})
	if err != nil {
		return nil, err
	}
	loadSeconds := time.Since(start).Seconds()
	var tuned stage.Choice
	tuneStart := time.Now()
	if f.searchesKernel(data) {
		if tuned, err = a.tune(ctx, f, data, &cfg); err != nil {
			return nil, err
		}
	}
	tuneSeconds := time.Since(tuneStart).Seconds()
	a.setCheckpoint(&cfg, &f.checkpointFlags)
	result, err := a.solveAndScore(ctx, data, cfg, loadSeconds, f)
	if err == nil && tuned != nil {
		result.sol.Tune, result.sol.Model.Origin.Tuned = tuned, true
		result.sol.Seconds.Total += tuneSeconds
	}
	return result, err
}

// loadAndConfigure joins the ranks, loads the data by load, prints the hints, and returns the data with the
// configuration that the flags describe. An option that is not set comes from the model of --extend or from the
// registry's settings for the data, or else is the default that its help text states. All ranks call it together. It
// returns an error if they do not have the same data and options.
func (a *app) loadAndConfigure(ctx context.Context, f *labFlags, load func(context.Context) (*problemData, error)) (
	*problemData, krrlab.Config, error) {
	if err := a.startRun(ctx, &f.rankFlags, f.flags); err != nil {
		return nil, krrlab.Config{}, err
	}
	a.show(krrlab.Event{Stage: stage.Load})
	data, err := load(ctx)
	if err = a.agree(ctx, err); err != nil {
		return nil, krrlab.Config{}, err
	}
	if err := a.requireSameData(ctx, data.train, data.test); err != nil {
		return nil, krrlab.Config{}, err
	}
	cfg, err := f.configFor(data)
	if features, ok := cfg.Precond.(krrlab.Features); ok {
		data.addHint("%s", features.Levels.Hint())
	}
	a.showHints(data)
	err = a.agree(ctx, err)
	if cfg.Stop.Rule == bound.ByLabels {
		cfg.StopRows = data.test
	}
	cfg.Monitor, cfg.Comm, cfg.Memory = a.show, a.comm(), a.memoryLimit(f.Memory)
	return data, cfg, err
}

// fitResult is a solved problem with its test results, from which a command makes its report.
type fitResult struct {
	sol  *krrlab.Solution
	data *problemData
	test *model.Prediction // prediction of the test points; nil if there are none
	plot *plots.Figure     // picture for --plot; nil without it
}

// solveAndScore solves the problem, sets the threshold, cross-validates if --folds is set, and tests the model on the
// test data. The threshold is that of the flags, or else that of the model of --extend. A failed cross-validation is
// recorded in the solution and does not end the command. loadSeconds is the time that loading the data took.
func (a *app) solveAndScore(ctx context.Context, data *problemData, cfg krrlab.Config, loadSeconds float64,
	f *fitFlags) (*fitResult, error) {
	start := time.Now()
	lab, err := krrlab.New(data.train, cfg)
	extended := data.extended
	if extended != nil {
		lab, err = krrlab.StartFrom(extended.C, data.train, cfg)
	}
	if err != nil {
		return nil, err
	}
	if lab.Planning() {
		var planOptions krrlab.PlanOptions
		if data.test != nil {
			planOptions.TestRows = data.test.Len()
		}
		// If planning fails and the context has not ended, Solve runs the default method.
		if _, err := lab.Plan(ctx, planOptions); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}

	sol, err := lab.Solve(ctx)
	if err != nil {
		a.interruptedNote = interruptedText(sol) + cmp.Or(a.resumeHint(), nothingWritten)
		return nil, err
	}
	if sol.Threshold, err = f.threshold(ctx, lab, data.train); err != nil {
		return nil, err
	}
	if sol.Threshold == nil && extended != nil && extended.Threshold != 0 {
		sol.Threshold = &solve.Threshold{Value: extended.Threshold, Source: f.Extend}
	}
	if threshold := sol.Threshold; threshold != nil && threshold.Value != 0 {
		sol.Model.Threshold = threshold.Value
		sol.SetTrainingError(data.train)
	}
	if f.Folds > 0 {
		if sol.Folds, err = lab.CrossValidate(ctx, f.Folds, sol.Model.Threshold); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			sol.FoldsFailed = err.Error() // the fit itself is kept
		}
	}
	sol.Version = a.env.Version
	data.setOrigin(&sol.Model.Origin, a.env.Version)
	result := &fitResult{sol: sol, data: data}
	if data.test != nil {
		if err := result.scoreTest(ctx, cfg.Stop.Rule); err != nil {
			return nil, err
		}
	}
	sol.Seconds.Load = loadSeconds
	sol.Seconds.Total = loadSeconds + time.Since(start).Seconds()
	sol.PeakBytes = accel.PeakRSS()
	a.addRanks(sol)
	return result, nil
}

// setOrigin records in the origin of a model how its training data were read, and the version of this program.
func (d *problemData) setOrigin(origin *model.Origin, version string) {
	origin.Version, origin.Categorical = version, d.train.ColumnCodings
	origin.Target, origin.Drop, origin.Rows, origin.Holdout = d.target, d.drop, d.sourceRows, d.holdout
	origin.Groups, origin.Space = d.groups, d.train.Space
	origin.Tuned = d.extended != nil && d.extended.Origin.Tuned
}

// scoreTest predicts the test rows, and adds their errors to the solution. With the rule bound.ByLabels it also counts
// the labels that the remaining error of the solve leaves undecided.
func (r *fitResult) scoreTest(ctx context.Context, rule bound.Rule) (err error) {
	sol, test := r.sol, r.data.test
	if test.ReadReport != nil && test.ReadReport != r.data.train.ReadReport { // the test rows have their own file
		sol.Read = append(sol.Read, test.ReadReport)
	}
	start := time.Now()
	if r.test, err = sol.Model.Predict(ctx, test, sol.PredictOptions()); err != nil {
		return err
	}
	sol.SetScore(r.test.Score(test))
	if rule == bound.ByLabels {
		sol.CountUndecidedLabels(r.test, test)
	}
	sol.Seconds.Predict = time.Since(start).Seconds()
	return nil
}

// threshold returns the number that f(x) is compared with to decide between two classes: the value of --threshold, or
// the best one for --metric by leave-one-out. It returns nil for the usual threshold 0: if --threshold is not set and
// the metric does not depend on a threshold or there are not two classes.
func (f *fitFlags) threshold(ctx context.Context, lab *krrlab.Lab, train *datasets.Dataset) (*solve.Threshold, error) {
	metric, err := model.MetricOf(f.Metric, train.Class != nil)
	if err != nil {
		return nil, errUsage{err}
	}
	isBinary, isSet := len(train.Labels) == 2, f.flags.IsSet("threshold")
	switch value, err := strconv.ParseFloat(f.Threshold, 64); {
	case isSet && !isBinary:
		return nil, usagef("--threshold %s: there are not two classes", f.Threshold)
	case isSet && err == nil:
		return &solve.Threshold{Value: value}, nil
	case !isSet && !(isBinary && metric.DependsOnThreshold()):
		return nil, nil
	}
	return lab.BestThreshold(ctx, metric)
}

// reportFit prints the report of a fit, or a summary of it. If the solve did not reach the tolerance, it also prints a
// warning with advice, and returns an error that sets the exit code.
func (a *app) reportFit(f *fitFlags, r *fitResult) error {
	verbose := f.Verbose || f.Data+f.Matrix != "" && !f.flags.IsSet("verbose") || !r.sol.CriterionMet()
	if verbose {
		if r.sol.Tune != nil {
			a.printf("%s", r.sol.Tune.Short())
		}
		a.printf("%s", r.sol)
	} else {
		a.printf("%s", r.sol.Summary())
	}
	if text := r.noSkillWarning(); text != "" {
		a.printf("%-*s %s\n", labelWidth, "note", text)
	}
	a.printWritten(labelWidth, map[string]string{f.Plot: "predictions against answers"})
	if !verbose {
		a.printf("%-*s %s\n", labelWidth, "next", f.nextSteps(a.writtenFiles))
	}
	if r.sol.CriterionMet() {
		return nil
	}
	a.warnf("not converged: %s after %s, true residual %.2e, asked %g; %s", r.sol.Status,
		plural.Count(r.sol.Iterations, "iteration"), r.sol.TrueResidual, r.sol.Tol, advice(r.sol))
	return errStatus(exitNotConverged)
}

// nextSteps suggests further commands and flags to the user. written are the files that the command has written.
func (f *fitFlags) nextSteps(written []string) string {
	var steps []string
	if f.Plot == "" {
		steps = append(steps, "--plot fit.png draws it")
	}
	switch {
	case f.Out == "":
		steps = append(steps, "--out m.krr saves the model for krrlab predict")
	case slices.Contains(written, f.Out):
		steps = append(steps, "krrlab predict "+safe.Shell(f.Out)+" --in new.csv --out predictions.csv")
	}
	return strings.Join(append(steps, "--verbose shows how it was solved"), "; ")
}

// check returns an error if the flags are invalid for any data.
func (f *fitFlags) check() error {
	for _, name := range fixedByModel {
		if f.Extend != "" && f.flags.IsSet(name) {
			return usagef("--%s: with --extend the model determines it: leave it out", name)
		}
	}
	switch hasWeights := f.Weights != "" || f.Classes != "none"; {
	case f.Calibrate == "test" && f.Train != "" && f.Test == "" && f.Holdout == 0:
		return errNoTestRows
	case f.Calibrate == "loo" && hasWeights:
		return usagef("--calibrate loo does not go with weights: want test rows, --test FILE or --holdout SHARE")
	}
	if threshold, err := strconv.ParseFloat(f.Threshold, 64); f.Threshold != "auto" &&
		(err != nil || math.IsNaN(threshold) || math.IsInf(threshold, 0)) {
		return usagef("--threshold %s: want a number or auto", f.Threshold)
	}
	if f.Stop.Rule == bound.ByLabels && (f.flags.IsSet("threshold") || model.Metric(f.Metric).DependsOnThreshold()) {
		return usagef("--stop labels counts labels at the threshold 0: leave --threshold and --metric %s out", f.Metric)
	}
	return f.labFlags.check()
}
