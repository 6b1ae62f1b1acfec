package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// fitFlags are the flags of krrlab fit.
type fitFlags struct {
	labFlags
	checkpointFlags
	Tune      bool   `flag:"tune"`
	ARD       string `flag:"ard" default:"auto" check:"one of auto no"`
	Metric    string `flag:"metric" default:"auto" check:"one of auto error auc logloss balanced-error f1 rmse"`
	Threshold string `flag:"threshold" default:"0"`
	PlotSolve string `flag:"plot-solve" file:"write"`
	Out       string `flag:"out" file:"write" help:"write the model to this file"`
	Calibrate string `flag:"calibrate" default:"auto" check:"one of auto test loo none"`
}

func (fitFlags) Help() map[string]string {
	return map[string]string{
		"tune": "choose by leave-one-out those of kernel, σ and λ that --kernel, --sigma and --lambda do not set " +
			"(see krrlab tune)",
		"ard": "with --tune, length scales for each feature: auto, where they are seen to be worth it, or no",
		"calibrate": "errors that the model keeps for krrlab predict --interval and --probabilities: test, of the " +
			"test rows; loo, of each training row left out (K is factored once more); or none; auto is test if there " +
			"are test rows",
		"metric": "what --tune and --threshold make best (see krrlab tune)",
		"threshold": "what f(x) is compared with where there are two classes: a number, or auto, which chooses the best " +
			"for --metric on rows left out (with --metric f1 or balanced-error default: auto)",
		"json": "write the report as JSON to this file",
		"plot": "draw predictions against answers, for classes how often each is taken for which, of the test data or " +
			"else of training points," + formats,
		"plot-solve": "draw the convergence of the solve" + formats,
	}
}

// plannedHelp has the texts of flags where the method is left to the plan.
var plannedHelp = map[string]string{
	"precond": "preconditioner, and its options, such as 'nystrom features=500 lambda-p=0.1': auto, which krrlab plan " +
		"chooses, or one of " + strings.Join(stage.Names(), ", "),
	"lambda-p": "ridge λ_p > 0 of the preconditioner (default: with --precond auto the plan's, else λ)",
	"features": "random features s, or the rank of a preconditioner, 1 ≤ s ≤ n (default: with --precond auto the " +
		"plan's, else n/10, at least 500, at most 10,000; of vecchia: none)",
}

func newFitFlags() *fitFlags {
	f := &fitFlags{labFlags: newLabFlags()}
	f.Name = "auto"
	f.flags = schema.Of(f).Without("keep").Describe(plannedHelp)
	return f
}

func (a *app) fitCommand() *cobra.Command {
	f := newFitFlags()
	return withOptions(&cobra.Command{
		Use:   "fit (--data NAME | --train FILE [--test FILE | --holdout SHARE])",
		Short: "Fit a model, judge it on test data, save it",
		Long: `Fit solves (K+λI)c = y for the training data and tests the model on the test data.
For classes, c has one column per class (±1 coding; one column for two classes). For
regression the mean of y is subtracted first, and the model adds it to its predictions;
--center no leaves y as it is. In scikit-learn this is KernelRidge with alpha = λ and, for
the Gaussian, kernel="rbf" and gamma = 1/(2σ²), on targets less their mean. Exit code 3 means
that the solve did not reach the tolerance within --max-iter; all results are still written.

Started by mpirun, mpiexec or srun, the same command runs on all ranks together: K is
distributed over them, and rank 0 prints and writes. With --checkpoint DIR, --resume
continues an interrupted run, on any number of ranks, to the same coefficients.`,
		Example: `  krrlab fit --train train.csv --target price --drop id --categorical city,kind --impute median \
      --holdout 0.2 --tune --out m.krr
  krrlab fit --data mnist --sigma 8.5 --lambda 0.01 --solver pcg --precond features --lambda-p 0.1 --features 6000
  krrlab fit --train train.csv --test test.csv --target price --sigma 2
  mpirun -n 8 krrlab fit --data mnist --features 6000 --checkpoint run1 --resume`,
		Args:        noArgs,
		Annotations: onRanks,
	}, f.flags, func(ctx context.Context, _ []string) error { return a.fit(ctx, f) })
}

func (a *app) fit(ctx context.Context, f *fitFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	for _, name := range []string{"features", "lambda-p"} {
		if f.plain() && f.flags.Given(name) {
			a.note("note: --%s: of no effect without a preconditioner", name)
		}
	}
	progress := a.newProgress()
	defer progress.clear()
	r, err := a.solve(ctx, f, progress)
	if err != nil {
		return err
	}
	var unsolved error
	if f.Out != "" {
		err := a.calibrate(ctx, f.Calibrate, r)
		if errors.Is(err, interval.ErrUnsolved) {
			unsolved, err = err, nil // the report and the model are there all the same, on all ranks
		}
		if err = a.agree(ctx, err); err != nil {
			return err
		}
	}
	if f.Plot != "" { // before anything is written
		r.plot, err = r.plotPredictions(ctx)
		if err = a.agree(ctx, err); err != nil {
			return err
		}
	}
	progress.clear()
	err = a.conclude(ctx, f, r)
	if _, silent := errors.AsType[errStatus](err); silent && unsolved != nil {
		a.say("--calibrate loo: %v", unsolved)
	}
	return cmp.Or(err, a.agree(ctx, unsolved))
}

// conclude writes what was asked for, all that can be, and says how it ended, also where something could not be
// written.
func (a *app) conclude(ctx context.Context, f *fitFlags, r *fitted) error {
	err := a.put(f.Out, r.sol.Model.Save)
	err = cmp.Or(err, a.writeStage(&f.stageFiles, r.sol, r.plot.figure))
	err = cmp.Or(err, a.put(f.PlotSolve, func(file string) error { return f.save(r.sol.Plot(), file) }))
	if err == nil && r.sol.Reached() && a.first() {
		err = r.sol.RemoveCheckpoints()
	}
	return cmp.Or(a.agree(ctx, err), a.finish(f, r))
}

// solve loads the data, solves the problem and judges the answer.
func (a *app) solve(ctx context.Context, f *fitFlags, progress *progress) (*fitted, error) {
	start := time.Now()
	data, cfg, err := a.open(ctx, &f.labFlags, progress, f.notes)
	if err != nil {
		return nil, err
	}
	load := time.Since(start).Seconds()
	var tuned stage.Choice
	begun := time.Now()
	if f.Tune {
		if tuned, err = a.tuned(ctx, f, data, &cfg); err != nil {
			return nil, err
		}
	}
	took := time.Since(begun).Seconds()
	a.keep(&cfg, &f.checkpointFlags, progress)
	r, err := a.run(ctx, data, cfg, load, f)
	if err == nil && tuned != nil {
		r.sol.Tune, r.sol.Model.Origin.Tuned = tuned, true
		r.sol.Seconds.Total += took
	}
	return r, err
}

// open joins the ranks, loads the data, of which own says what the user may want to know, and turns the flags into a
// configuration; what is not set comes from the registry's settings for the data, then from the defaults the flags'
// help states.
func (a *app) open(ctx context.Context, f *labFlags, progress *progress, own func(*loaded)) (*loaded, krrlab.Config,
	error) {
	if err := a.start(ctx, &f.rankFlags, f.flags); err != nil {
		return nil, krrlab.Config{}, err
	}
	data, err := a.loadSame(ctx, f, progress)
	if err != nil {
		return nil, krrlab.Config{}, err
	}
	own(data)
	data.hint("%s", f.Levels.Hint())
	a.showHints(data, progress)
	cfg, err := f.settled(data)
	cfg.Memory = 0 // a rank's own; files that flags name have been read
	if own, _ := json.Marshal([]any{cfg, f.PrecondSpec, f.kernelFlags}); err == nil {
		err = a.same(ctx, own, "the options here, or the files that they name, are not those of rank 0")
	}
	if cfg.Monitor = progress.show; cfg.Stop.Rule == bound.Labels {
		cfg.StopRows = data.test
	}
	cfg.Comm, cfg.Memory = a.group(), a.memory(f.Memory)
	return data, cfg, err
}

// notes hints at what a fit leaves out.
func (f *fitFlags) notes(data *loaded) {
	if data.test == nil && f.Train != "" && data.given == nil {
		data.hint("there are no test data: --test FILE, or --holdout 0.2, shows how well the model predicts")
	}
	if f.Train != "" && !f.Tune && data.given == nil && !f.flags.Given("sigma", "gamma", "lambda") {
		data.hint("the scale of the kernel and λ are defaults: --tune chooses them by the data")
	}
}

// fitted is a solved and judged problem.
type fitted struct {
	sol  *krrlab.Solution
	data *loaded
	test *model.Prediction // of the test points; nil without any
	plot predictionPlot    // empty without --plot
}

// run solves the problem, sets the threshold, and judges the answer on the test data.
func (a *app) run(ctx context.Context, data *loaded, cfg krrlab.Config, load float64, f *fitFlags) (*fitted, error) {
	start := time.Now()
	lab, err := krrlab.New(data.train, cfg)
	if err != nil {
		return nil, err
	}
	if lab.Planning() {
		var o krrlab.PlanOptions
		if data.test != nil {
			o.Tests = data.test.Len()
		}
		if _, err := lab.Plan(ctx, o); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	sol, err := lab.Solve(ctx)
	if err != nil {
		a.left = reachedText(sol) + cmp.Or(a.goOnText(), nothingWritten)
		return nil, err
	}
	if sol.Threshold, err = f.threshold(ctx, lab, data.train); err != nil {
		return nil, err
	}
	if t := sol.Threshold; t != nil && t.Value != 0 {
		sol.Model.Threshold = t.Value
		sol.SetTraining(data.train)
	}
	sol.Version = a.env.Version
	origin := &sol.Model.Origin
	origin.Version, origin.Categorical = a.env.Version, data.train.Categories
	origin.Target, origin.Drop, origin.Rows, origin.Holdout = data.target, data.drop, data.rows, data.holdout
	origin.Groups = data.groups
	r := &fitted{sol: sol, data: data}
	if data.test != nil {
		if data.test.Read != nil && data.test.Read != data.train.Read { // not held out of one file
			sol.Read = append(sol.Read, data.test.Read)
		}
		t0 := time.Now()
		if r.test, err = sol.Model.Predict(ctx, data.test, sol.PredictOptions()); err != nil {
			return nil, err
		}
		sol.SetScore(r.test.Score(data.test))
		if cfg.Stop.Rule == bound.Labels {
			sol.CountOpenLabels(r.test, data.test)
		}
		sol.Seconds.Predict = time.Since(t0).Seconds()
	}
	sol.Seconds.Load = load
	sol.Seconds.Total = load + time.Since(start).Seconds()
	sol.PeakBytes = accel.PeakRSS()
	a.describe(sol)
	return r, nil
}

// threshold returns what decides between two classes; nil for 0 unasked.
func (f *fitFlags) threshold(ctx context.Context, lab *krrlab.Lab, train *datasets.Dataset) (*solve.Threshold, error) {
	if f == nil {
		return nil, nil
	}
	m, err := model.MetricOf(f.Metric, train.Class != nil)
	if err != nil {
		return nil, errUsage{err}
	}
	two, given := len(train.Labels) == 2, f.flags.Given("threshold")
	switch v, err := strconv.ParseFloat(f.Threshold, 64); {
	case given && !two:
		return nil, usagef("--threshold %s: there are not two classes", f.Threshold)
	case given && err == nil:
		return &solve.Threshold{Value: v}, nil
	case !given && !(two && m.Thresholded()):
		return nil, nil
	}
	return lab.BestThreshold(ctx, m)
}

func (a *app) finish(f *fitFlags, r *fitted) error {
	if r.sol.Tune != nil {
		a.printf("%s", r.sol.Tune.Short())
	}
	a.printf("%s", r.sol)
	if text := r.useless(); text != "" {
		a.printf("%-12s %s\n", "note", text)
	}
	a.printWrote(12, f.Plot, r.plot.what)
	if r.sol.Reached() {
		return nil
	}
	a.say("not converged: %s after %s, true residual %.2e, asked %g; %s", r.sol.Status,
		plural.Count(r.sol.Iterations, "iteration"), r.sol.TrueResidual, r.sol.Tol, advice(r.sol))
	return errStatus(exitNotConverged)
}

// check refuses what no data could make right.
func (f *fitFlags) check() error {
	switch weights := f.Weights != "" || f.Classes == "balanced"; {
	case f.Calibrate == "test" && f.Train != "" && f.Test == "" && f.Holdout == 0:
		return errNoTestRows
	case f.Calibrate == "loo" && weights:
		return usagef("--calibrate loo does not go with weights: want test rows, --test FILE or --holdout SHARE")
	}
	if v, err := strconv.ParseFloat(f.Threshold, 64); f.Threshold != "auto" && (err != nil || v-v != 0) {
		return usagef("--threshold %s: want a number or auto", f.Threshold)
	}
	if f.Stop.Rule == bound.Labels && (f.flags.Given("threshold") || model.Metric(f.Metric).Thresholded()) {
		return usagef("--stop labels counts labels at the threshold 0: leave --threshold and --metric %s out", f.Metric)
	}
	return cmp.Or(f.labFlags.check(), checkPlot(f.PlotSolve))
}
