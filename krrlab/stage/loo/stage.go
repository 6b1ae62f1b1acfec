package loo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model/leaveout"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Stage defines the stage loo.
var Stage = stage.Definition{
	Name: "loo", Options: Options{}, Result: (*Result)(nil),
	Short: "Leave-one-out error and GCV for a grid of λ, with intervals",
	Long: `Loo computes the leave-one-out error (RMSE, or the share of wrong labels) and GCV
for each λ of a grid, without a second fit. For small n it is exact, and for points in one to
three dimensions where a Fourier series of K has few modes, also with −2 ln p(y). For larger n
all λ are solved together in one subspace, and the diagonal of (K+λI)⁻¹ is estimated by random
signs. The intervals cover the error of estimate and solve at the stated rate.`,
	Example: `  krrlab loo --data ijcnn1 --n 5000 --plot loo.svg
  krrlab loo --train train.csv --target price --grid 0.001,0.01,0.1,1 --json loo.json`,
}

// Options of the stage. Zero values mean the defaults.
type Options struct {
	Lambdas    []float64 `flag:"grid" check:"positive" help:"values of λ, separated by commas (default: 13, from λ/1000 to 1000λ)"`
	Confidence float64   `flag:"confidence" default:"0.95" check:"(0,1)" help:"of the intervals, between 0 and 1"`
	Probes     int       `flag:"probes" default:"8" check:">=4" help:"random probes for the diagonal; more give narrower intervals"`
	MaxExactN  int       `flag:"exact-below" default:"8000" check:">=-1" zero:"-1" help:"largest n for which dense factors are used, if they fit --memory; -1 for never"`
	// Precond names the landmarks, with options. Default: the landmarks of the configuration if it has some, else
	// RPCholesky.
	Precond string `flag:"precond" options:"own" help:"what approximates K: a preconditioner of landmarks with its options, such as nystrom (default: rpcholesky)"`
	// Rank is the number s of landmarks, which take 9s³ flops.
	Rank      int  `flag:"rank" check:">=1" help:"landmarks s, 1 ≤ s ≤ n (default: n/5, at least 500, at most 1000)"`
	Residuals bool // store the residuals y_i − f_{−i}(x_i) for each λ; JSON omits them
}

// Run computes the leave-one-out error and GCV for each λ of a grid: exactly for small n, and otherwise with intervals,
// from one subspace for all λ. For rows with weights the error is Σw_i(y_i−f_{−i}(x_i))²/Σw_i; for classes it is the
// weighted share of wrong rows.
func (o Options) Run(ctx context.Context, bench stage.Bench) (stage.Stage, error) {
	start, problem := time.Now(), bench.Problem()
	if err := schema.Complete(&o); err != nil {
		return nil, err
	}
	if o.Rank > problem.N {
		return nil, fmt.Errorf("s = %d landmarks for n = %d points: want 1 ≤ s ≤ n", o.Rank, problem.N)
	}
	if _, err := o.approximation(problem); err != nil {
		return nil, err
	}
	if len(o.Lambdas) == 0 {
		for i := -6; i <= 6; i++ {
			o.Lambdas = append(o.Lambdas, problem.Lambda*math.Pow(10, float64(i)/2))
		}
	}
	groups := problem.Train.Grouping(kernel.FirstEqual(problem.Kernel, problem.Train.X))
	r := &Result{Header: problem.Header, Classification: problem.Train.Task == datasets.Classification,
		Repeats: groups.Repeats}
	looProblem := &leaveout.Problem{
		Classification: r.Classification, Weights: problem.Train.FitWeights(),
		SubtractsMean: problem.Coding.Mean != nil,
		Confidence:    o.Confidence, Probes: o.Probes, ComputeResiduals: o.Residuals,
		Stream: rng.New(problem.Seed).Sub("leave one out"), Progress: stage.Progress(ctx, bench.Notify, stage.Probes),
	}
	looProblem.FirstEqual, looProblem.Groups = groups.SplitByKind(groups.FirstRow)
	if problem.Train.ClassWeights != nil {
		looProblem.ScoreWeight = problem.Train.Weight
	}

	isDense, err := r.score(ctx, bench, looProblem, &o)
	if err != nil {
		return nil, err
	}
	for i, score := range r.Scores {
		if score.Error.Value < r.Scores[r.Best].Error.Value {
			r.Best = i
		}
	}
	if isDense && groups.OtherFirstRow != nil {
		// OtherScore is the score at the best λ for the other grouping of equal rows.
		looProblem.ComputeResiduals = false
		looProblem.FirstEqual, looProblem.Groups = groups.SplitByKind(groups.OtherFirstRow)
		alternative := &Result{}
		if err := alternative.scoreDense(ctx, bench, looProblem, []float64{r.Scores[r.Best].Lambda}); err != nil {
			return nil, err
		}
		r.OtherScore = &alternative.Scores[0]
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// score sets the scores, from dense factors if the options and the memory allow them, else by a Fourier series, and
// else from probes. It reports whether dense factors were used.
func (r *Result) score(ctx context.Context, bench stage.Bench, looProblem *leaveout.Problem, o *Options) (isDense bool,
	err error) {
	if r.N <= o.MaxExactN {
		err := r.scoreDense(ctx, bench, looProblem, o.Lambdas)
		tooLarge, ok := errors.AsType[*accel.MemoryError](err)
		if !ok {
			return true, err
		}
		r.NotDenseReason = tooLarge.Shortage()
	}
	if r.Modes, err = r.scoreSeries(ctx, bench, looProblem, o); err != nil && ctx.Err() == nil {
		r.NotDenseReason, r.Modes, err = fmt.Sprintf("no Fourier series: %v", err), 0, nil
	}
	if r.Modes == 0 && err == nil {
		err = r.scorePath(ctx, bench, looProblem, o)
	}
	return false, err
}

// scoreDense sets the scores for the lambdas, from dense factors. The error wraps an *accel.MemoryError if these do not
// fit into memory.
func (r *Result) scoreDense(ctx context.Context, bench stage.Bench, looProblem *leaveout.Problem,
	lambdas []float64) error {
	const bytesPerEntry = 16 // K and its factor in float64
	k, kernelError, err := bench.Dense(ctx, bytesPerEntry)
	if err != nil {
		return err
	}
	r.KError, looProblem.KError = kernelError, kernelError
	r.Scores, err = leaveout.Dense(ctx, k, bench.Problem().Y, lambdas, looProblem)
	return comm.Agree(ctx, bench.Problem().Comm, err)
}

// scoreSeries sets the scores by a Fourier series of K and returns the number of its modes. It returns 0 if there is no
// affordable series, if the options request landmarks, or if groups of rows are left out.
func (r *Result) scoreSeries(ctx context.Context, bench stage.Bench, looProblem *leaveout.Problem,
	o *Options) (modes int, err error) {
	problem := bench.Problem()
	if o.Precond != "" || o.Rank > 0 || looProblem.Groups != nil {
		return 0, nil
	}
	series, bound := problem.AffordableSeries()
	if series == nil {
		return 0, nil
	}
	bench.Notify(ctx, stage.Event{Stage: stage.Kernel, Remaining: -1})
	r.KError, looProblem.KError = bound, bound
	x, _ := points.SplitFactors(problem.X)
	r.Scores, err = leaveout.Fourier(ctx, series, x, problem.Y, o.Lambdas, looProblem)
	return series.Modes(), err
}

// Prepare returns an error for a preconditioner without landmarks.
func (o *Options) Prepare(*stage.Command) error {
	_, err := o.landmarkKind()
	return err
}

// landmarkKind returns the preconditioner that the options name, or RPCholesky.
func (o *Options) landmarkKind() (stage.LowRank, error) {
	if o.Precond == "" {
		return recipe.RPCholesky{}, nil
	}
	parsed, err := stage.ParsePreconditioner(o.Precond)
	if err != nil {
		return nil, err
	}
	lowRank, ok := parsed.(stage.LowRank)
	if ok {
		_, isRandom := lowRank.Approximation(nil).FeatureSource.(stage.RandomFeatures)
		ok = !isRandom
	}
	if !ok {
		return nil, fmt.Errorf("--precond %s: want one of landmarks, such as nystrom or rpcholesky", o.Precond)
	}
	return lowRank, nil
}

// approximation returns the landmarks of the options, or those of the configuration if the options name none.
func (o *Options) approximation(problem *stage.Problem) (*stage.Approximation, error) {
	if o.Precond == "" && o.Rank == 0 && problem.Z != nil && problem.Z.Map() == nil {
		approximation := *problem.Z
		approximation.Spectral = false
		return &approximation, nil
	}
	lowRank, err := o.landmarkKind()
	if err != nil {
		return nil, err
	}
	defaults := problem.Defaults()
	defaults.S = cmp.Or(o.Rank, min(max(500, problem.N/5), problem.N, 1000)) // see the help text of --rank
	withDefaults, err := lowRank.WithDefaults(defaults)
	if err != nil {
		return nil, err
	}
	approximation := withDefaults.(stage.LowRank).Approximation(problem.Kernel)
	approximation.Spectral = false
	return approximation, nil
}

// scorePath sets the scores from random probes in one subspace for all λ (leaveout.Path). It returns an error for
// groups of rows that are not equal. If equal rows cannot be left out together, the scores have no interval, and
// NoIntervalReason says so.
func (r *Result) scorePath(ctx context.Context, bench stage.Bench, looProblem *leaveout.Problem, o *Options) error {
	problem := bench.Problem()
	if looProblem.Groups != nil {
		return fmt.Errorf("leave-one-out by probes cannot leave out groups (%s): --exact-below %d uses dense factors, "+
			"if they fit into the memory", r.Repeats.Rule, r.N)
	}
	z, err := o.approximation(problem)
	if err != nil {
		return err
	}
	k, err := bench.K(ctx, problem.LowRankBytes(z.S))
	if err != nil {
		return err
	}
	landmarks, err := bench.Z(ctx, *z)
	if err != nil {
		return err
	}
	r.KError = k.Choice().Error + k.Error // storage error of K, and rounding error of products with K
	r.Precond, r.S, looProblem.KError = landmarks.Text, landmarks.Z.D, r.KError
	if factor := landmarks.Factor; factor != nil && factor.Certain() {
		looProblem.SketchExcess = factor.Rounding + r.KError
	}
	bench.Notify(ctx, stage.Event{Stage: stage.Eigenvalues, Remaining: -1})
	if r.Repeats.Grouped > 0 && (looProblem.Classification || problem.Comm.Size() > 1) {
		looProblem.FirstEqual, r.NoIntervalReason = nil, "probes can do so only for a regression in one process; "+
			"--exact-below uses dense factors"
	}
	m, err := precond.New(ctx, looProblem.Merged(landmarks.Z), z.LambdaP,
		&precond.Options{Form: precond.FormEigen, Comm: problem.Comm})
	if err != nil {
		return err
	}
	r.Scores, err = leaveout.Path(ctx, k, m, problem.Y, o.Lambdas, looProblem)
	if r.NoIntervalReason != "" {
		for i := range r.Scores {
			interval := &r.Scores[i].Error
			if interval.Lo, interval.Hi, interval.Method = 0, math.Inf(1), "none"; looProblem.Classification {
				interval.Hi = 1
			}
		}
	}
	return err
}
