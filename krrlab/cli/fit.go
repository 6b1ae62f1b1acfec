package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/interval"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/tune"
)

// fitFlags are the flags of krrlab fit.
type fitFlags struct {
	dataFlags
	kernelFlags
	solveFlags
	rankFlags
	checkpointFlags
	stageFiles
	out             string
	tune            bool
	ard             string
	calibrate, warm string
	start           *model.Model // of warm
}

func (a *app) fitCommand() *cobra.Command {
	f := &fitFlags{}
	cmd := &cobra.Command{
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
		Example: `  krrlab fit --train train.csv --target price --drop id --categorical city,kind --impute median --holdout 0.2 --tune --out m.krr
  krrlab fit --data mnist --sigma 8.5 --lambda 0.01 --solver pcg --precond features --lambda-p 0.1 --features 6000
  krrlab fit --train train.csv --test test.csv --target price --sigma 2
  mpirun -n 8 krrlab fit --data mnist --features 6000 --checkpoint run1 --resume`,
		Args:        noArgs,
		Annotations: onRanks,
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.fit(cmd.Context(), cmd.Flags(), f) },
	}
	p := cmd.Flags()
	f.add(p)
	p.SortFlags = false
	return cmd
}

func (f *fitFlags) add(p *pflag.FlagSet) {
	f.dataFlags.add(p)
	f.kernelFlags.add(p)
	f.solveFlags.add(p)
	f.rankFlags.add(p)
	f.checkpointFlags.add(p)
	p.BoolVar(&f.tune, "tune", false, "choose by leave-one-out those of kernel, σ and λ that --kernel, --sigma and --lambda do not set (see krrlab tune)")
	p.StringVar(&f.ard, "ard", "auto", "with --tune, "+ardUsage)
	p.StringVar(&f.out, "out", "", "write the model to this file")
	p.StringVar(&f.calibrate, "calibrate", "auto", "errors that the model keeps for krrlab predict --interval and --probabilities: test, of the test rows; loo, of each training row left out (K is factored once more); or none; auto is test if there are test rows")
	p.StringVar(&f.warm, "warm", "", "start the iteration from this model's answer; the rows must be the same, with others allowed after them, or λ may differ; kernel, λ, scaling and target are the model's unless flags say otherwise")
	f.stageFiles.add(p, "the report", "the convergence (for a direct solve predictions against answers)")
	wantOneOf(p, []string{"auto", "test", "loo", "none"}, "calibrate")
	wantOneOf(p, ardWords, "ard")
}

func (a *app) fit(ctx context.Context, set *pflag.FlagSet, f *fitFlags) error {
	if err := f.check(set); err != nil {
		return err
	}
	if err := a.join(ctx, set, &f.rankFlags); err != nil {
		return err
	}
	if err := a.checkOutputs(ctx, f); err != nil {
		return err
	}
	if names := f.unused(set); names != "" && a.first() && !a.quiet {
		fmt.Fprintf(a.env.Stderr, "krrlab: note: %s: of no effect without a preconditioner\n", names)
	}
	progress := a.newProgress()
	defer progress.clear()
	r, err := a.solve(ctx, set, f, progress)
	if err != nil {
		return err
	}
	var unsolved error
	if f.out != "" {
		err := a.calibrate(ctx, f.calibrate, r)
		if errors.Is(err, interval.ErrUnsolved) {
			unsolved, err = err, nil // the report and the model are there all the same, on all ranks
		}
		if err = a.agree(ctx, err); err != nil {
			return err
		}
	}
	if f.plot != "" { // before anything is written
		r.picture, err = r.draw(ctx)
		if err = a.agree(ctx, err); err != nil {
			return err
		}
	}
	progress.clear()
	err = a.conclude(ctx, f, r)
	if _, silent := errors.AsType[errStatus](err); silent && unsolved != nil {
		fmt.Fprintf(a.env.Stderr, "krrlab: --calibrate loo: %v\n", unsolved)
	}
	if err != nil {
		return err
	}
	return a.agree(ctx, unsolved)
}

// conclude writes what was asked for, and says how it ended, also where something could not be written.
func (a *app) conclude(ctx context.Context, f *fitFlags, r *fitted) error {
	wrote, err := a.writeOutputs(f, r)
	return cmp.Or(a.agree(ctx, err), a.finish(f, r, wrote))
}

// checkOutputs reports what could not be written, before any work is done.
func (a *app) checkOutputs(ctx context.Context, f *fitFlags) error {
	return a.mayWrite(ctx, []namedFile{{"--train", f.train}, {"--test", f.test}, {"--warm", f.warm}}, append([]namedFile{{"--out", f.out}}, f.writes()...))
}

// solve loads the data, solves the problem and judges the answer.
func (a *app) solve(ctx context.Context, set *pflag.FlagSet, f *fitFlags, progress *progress) (*fitted, error) {
	start := time.Now()
	data, cfg, err := a.prepare(ctx, set, f, progress)
	if err != nil {
		return nil, err
	}
	load := time.Since(start).Seconds()
	a.deal(set, &cfg)
	var tuned *tune.Result
	if f.tune {
		if tuned, err = a.tuned(ctx, set, f, data, &cfg); err != nil {
			return nil, err
		}
	}
	if err := a.keep(&cfg, set, &f.checkpointFlags, progress); err != nil {
		return nil, err
	}
	r, err := a.run(ctx, data, cfg, load)
	if err == nil && tuned != nil {
		r.sol.Tune, r.sol.Model.Origin.Tuned = tuned, true
		r.sol.Seconds.Total += tuned.Seconds
	}
	return r, err
}

// prepare loads the data and turns the flags into a configuration.
func (a *app) prepare(ctx context.Context, set *pflag.FlagSet, f *fitFlags, progress *progress) (*loaded, krrlab.Config, error) {
	progress.show(krrlab.Event{Stage: stage.Load})
	f.readLimit, f.dataFlags.lengths, f.dataFlags.matrix = f.memory, f.kernelFlags.lengths, f.kernelFlags.matrix
	if err := a.agree(ctx, f.loadWarm(set)); err != nil {
		return nil, krrlab.Config{}, err
	}
	data, err := a.loadSame(ctx, &f.dataFlags)
	if err == nil {
		err = f.scaleWarm(set, data)
	}
	if err != nil {
		return nil, krrlab.Config{}, err
	}
	if data.test == nil && f.train != "" && data.given == nil && set.Lookup("out") != nil { // not for krrlab plan, which tests nothing
		data.hint("there are no test data: --test FILE, or --holdout 0.2, shows how well the model predicts")
	}
	if f.train != "" && set.Lookup("tune") != nil && !f.tune && f.start == nil && data.given == nil && !slices.ContainsFunc([]string{"sigma", "gamma", "lambda"}, set.Changed) {
		data.hint("the scale of the kernel and λ are defaults: --tune chooses them by the data")
	}
	if levels, err := feature.ParseLevels(f.sketch); err == nil {
		data.hint("%s", oneLevel(levels))
	}
	a.showHints(data, progress)
	cfg, err := f.config(set, data)
	cfg.Monitor = progress.show
	if err == nil {
		err = f.begin(data, &cfg)
	}
	return data, cfg, err
}

// fitted is a solved and judged problem.
type fitted struct {
	sol     *krrlab.Solution
	data    *loaded
	test    *model.Prediction // of the test points; nil without any
	picture *picture          // nil unless asked for
}

// run solves the problem and judges the answer on the test data.
func (a *app) run(ctx context.Context, data *loaded, cfg krrlab.Config, load float64) (*fitted, error) {
	start := time.Now()
	if cfg.Stop.Rule == bound.Labels {
		cfg.StopRows = data.test
	}
	lab, err := krrlab.New(data.train, cfg)
	if err != nil {
		return nil, err
	}
	if lab.Planning() {
		if _, err := lab.Plan(ctx, planOptions(data)); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	sol, err := lab.Solve(ctx)
	if err != nil {
		a.reached = reachedText(sol)
		return nil, err
	}
	sol.Model.Origin.Version = a.env.Version
	origin := &sol.Model.Origin
	origin.Categorical = data.train.Categories
	if data.test != nil && data.test.Read != nil && data.test.Read != data.train.Read { // held out of one file
		sol.Read = append(sol.Read, data.test.Read)
	}
	origin.Target, origin.Drop, origin.Rows, origin.Holdout = data.target, data.drop, data.rows, data.holdout
	r := &fitted{sol: sol, data: data}
	sol.Note = data.note
	sol.Version = a.env.Version
	if data.test != nil {
		t0 := time.Now()
		if r.test, err = sol.Model.Predict(ctx, data.test, sol.PredictOptions()); err != nil {
			return nil, err
		}
		sol.SetScore(r.test.Score(data.test))
		if cfg.Stop.Rule == bound.Labels {
			sol.SetSettled(r.test, data.test)
		}
		sol.Seconds.Predict = time.Since(t0).Seconds()
	}
	sol.Seconds.Load = load
	sol.Seconds.Total = load + time.Since(start).Seconds()
	sol.PeakBytes = accel.PeakRSS()
	a.describe(sol)
	return r, nil
}

// writeOutputs writes what was asked for, all that can be, and returns the files and the first error.
func (a *app) writeOutputs(f *fitFlags, r *fitted) (wrote []string, err error) {
	if !a.first() {
		return nil, nil
	}
	for _, v := range []struct {
		name  string
		write func() error
	}{
		{f.out, func() error { return r.sol.Model.Save(f.out) }},
		{f.json, func() error { return stage.WriteJSON(f.json, r.sol) }},
		{f.csv, func() error { return writeTable(f.csv, r.sol.Table()) }},
		{f.plot, func() error { return f.save(r.picture.figure) }},
	} {
		if v.name == "" {
			continue
		}
		if e := v.write(); e != nil {
			err = cmp.Or(err, e)
			continue
		}
		wrote = append(wrote, v.name)
	}
	if err == nil && r.sol.Reached() {
		err = r.sol.Forget()
	}
	return wrote, err
}

func (a *app) finish(f *fitFlags, r *fitted, wrote []string) error {
	if r.sol.Tune != nil {
		a.printf("%s", r.sol.Tune.Short())
	}
	a.printf("%s", r.sol)
	if f.start != nil {
		a.printf("%-12s %s\n", "warm", f.warmText(r.sol))
	}
	if text := r.useless(); text != "" {
		a.printf("%-12s %s\n", "note", text)
	}
	for _, name := range wrote {
		if name == f.plot && r.picture.what != "" {
			name += " (" + r.picture.what + ")"
		}
		a.printf("%-12s %s\n", "wrote", name)
	}
	if !r.sol.Reached() {
		if a.first() {
			fmt.Fprintf(a.env.Stderr, "krrlab: not converged: %s after %s, true residual %.2e, asked %g; %s\n",
				r.sol.Status, plural.Count(r.sol.Iterations, "iteration"), r.sol.TrueResidual, r.sol.Tol, advice(r.sol))
		}
		return errStatus(exitNotConverged)
	}
	return nil
}

func (f *fitFlags) check(set *pflag.FlagSet) error {
	kept, err := f.settings(set)
	if err != nil {
		return err
	}
	if kept != nil && f.solver == krrlab.Direct.String() {
		return usagef("--checkpoint keeps the state of an iteration: --solver direct has none")
	}
	if f.calibrate == "test" && f.train != "" && f.test == "" && f.holdout == 0 {
		return errNoTestRows
	}
	if f.calibrate == "loo" && (f.weights != "" || f.classes == "balanced") {
		return usagef("--calibrate loo does not go with weights: want test rows, --test FILE or --holdout SHARE")
	}
	if f.warm != "" && f.tune {
		return usagef("--warm and --tune exclude each other: --warm keeps the kernel of a model, --tune chooses one")
	}
	return cmp.Or(f.dataFlags.check(set), f.kernelFlags.check(set), f.solveFlags.check(set), knownData(f.data), f.plotFlags.check())
}

// config turns the flags into a configuration; what is not set comes from the
// registry's settings for the data, then from the defaults the flags' help states.
func (f *fitFlags) config(set *pflag.FlagSet, data *loaded) (cfg krrlab.Config, err error) {
	if cfg.Kernel, err = f.kernel(set, data); err != nil {
		return cfg, err
	}
	if m := f.start; m != nil {
		data.lambda = m.Lambda
		if !slices.ContainsFunc([]string{"kernel", "sigma", "gamma", "coef0", "degree"}, set.Changed) {
			cfg.Kernel = m.Kernel
		}
	}
	cfg.Lambda = cmp.Or(f.lambda, data.lambda, defaultLambda)
	cfg.Tol = f.tol
	if !set.Changed("tol") {
		cfg.Tol = defaultTol(data.train.Task)
	}
	if err := f.settle(&cfg); err != nil {
		return cfg, err
	}
	cfg.MaxIter, cfg.Repeat, cfg.Seed = f.maxIter, f.repeat, f.seed
	spec := krrlab.PrecondSpec{Name: f.named(), S: f.features, LambdaP: f.lambdaP, Form: f.form, Orthogonal: f.orthogonal, Neighbors: f.asked(set), Damping: f.damping}
	if f.unused(set) != "" { // as the note says
		spec.S, spec.LambdaP = 0, 0
	}
	if f.sketch != "" {
		if spec.Levels, err = feature.ParseLevels(f.sketch); err != nil {
			return cfg, errUsage{err}
		}
	}
	cfg.Precond, err = spec.Preconditioner(cfg.Kernel)
	return cfg, err
}
