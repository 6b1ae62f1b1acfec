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
	Residuals bool // keep y_i − f_{−i}(x_i) for each λ; JSON omits them
}

// Run computes the leave-one-out error and GCV for each λ of a grid: exactly for small n, and otherwise with intervals,
// from one subspace for all λ. For rows with weights the error is Σw_i(y_i−f_{−i}(x_i))²/Σw_i; for classes it is the
// weighted share of wrong rows.
func (o Options) Run(ctx context.Context, b stage.Bench) (stage.Stage, error) {
	start, p := time.Now(), b.Problem()
	if err := schema.Complete(&o); err != nil {
		return nil, err
	}
	if o.Rank > p.N {
		return nil, fmt.Errorf("s = %d landmarks for n = %d points: want 1 ≤ s ≤ n", o.Rank, p.N)
	}
	if _, err := o.approximation(p); err != nil {
		return nil, err
	}
	if len(o.Lambdas) == 0 {
		for i := -6; i <= 6; i++ {
			o.Lambdas = append(o.Lambdas, p.Lambda*math.Pow(10, float64(i)/2))
		}
	}
	groups := p.Train.Grouping(kernel.FirstEqual(p.Kernel, p.Train.X))
	r := &Result{Header: p.Header, Classification: p.Train.Task == datasets.Classification, Repeats: groups.Repeats}
	q := &leaveout.Problem{
		Classification: r.Classification, Weights: p.Train.FitWeights(),
		SubtractsMean: p.Coding.Mean != nil,
		Confidence:    o.Confidence, Probes: o.Probes, ComputeResiduals: o.Residuals,
		Stream: rng.New(p.Seed).Sub("leave one out"), Progress: stage.Progress(ctx, b.Notify, stage.Probes),
	}
	q.FirstEqual, q.Groups = groups.SplitByKind(groups.FirstRow)
	if p.Train.ClassWeights != nil {
		q.ScoreWeight = p.Train.Weight
	}

	isDense, err := r.score(ctx, b, q, &o)
	if err != nil {
		return nil, err
	}
	for i, s := range r.Scores {
		if s.Error.Value < r.Scores[r.Best].Error.Value {
			r.Best = i
		}
	}
	if isDense && groups.OtherFirstRow != nil { // also the best λ for the other grouping of equal rows
		q.ComputeResiduals = false
		q.FirstEqual, q.Groups = groups.SplitByKind(groups.OtherFirstRow)
		alternative := &Result{}
		if err := alternative.scoreDense(ctx, b, q, []float64{r.Scores[r.Best].Lambda}); err != nil {
			return nil, err
		}
		r.OtherScore = &alternative.Scores[0]
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// score sets the scores, from dense factors if the options and the memory allow them, else by a Fourier series, and
// else from probes. It reports whether dense factors were used.
func (r *Result) score(ctx context.Context, b stage.Bench, q *leaveout.Problem, o *Options) (isDense bool, err error) {
	if r.N <= o.MaxExactN {
		err := r.scoreDense(ctx, b, q, o.Lambdas)
		tooLarge, ok := errors.AsType[*accel.MemoryError](err)
		if !ok {
			return true, err
		}
		r.NotDenseReason = tooLarge.Shortage()
	}
	if r.Modes, err = r.scoreSeries(ctx, b, q, o); err != nil && ctx.Err() == nil {
		r.NotDenseReason, r.Modes, err = fmt.Sprintf("no Fourier series: %v", err), 0, nil
	}
	if r.Modes == 0 && err == nil {
		err = r.scorePath(ctx, b, q, o)
	}
	return false, err
}

// scoreDense sets the scores for the lambdas, from dense factors. The error wraps an *accel.MemoryError if these do not
// fit into memory.
func (r *Result) scoreDense(ctx context.Context, b stage.Bench, q *leaveout.Problem, lambdas []float64) error {
	k, kernelError, err := b.Dense(ctx, 16) // bytes per entry: of K and of its factor
	if err != nil {
		return err
	}
	r.KError, q.KError = kernelError, kernelError
	r.Scores, err = leaveout.Dense(ctx, k, b.Problem().Y, lambdas, q)
	return comm.Agree(ctx, b.Problem().Comm, err)
}

// scoreSeries computes the scores by a Fourier series, and returns its modes, or 0 if there is none, or if the options
// ask for landmarks.
func (r *Result) scoreSeries(ctx context.Context, b stage.Bench, q *leaveout.Problem,
	o *Options) (modes int, err error) {
	p := b.Problem()
	if o.Precond != "" || o.Rank > 0 || q.Groups != nil {
		return 0, nil
	}
	s, bound := p.AffordableSeries()
	if s == nil {
		return 0, nil
	}
	b.Notify(ctx, stage.Event{Stage: stage.Kernel, Remaining: -1})
	r.KError, q.KError = bound, bound
	x, _ := points.SplitFactors(p.X)
	r.Scores, err = leaveout.Fourier(ctx, s, x, p.Y, o.Lambdas, q)
	return s.Modes(), err
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
	p, err := stage.ParsePreconditioner(o.Precond)
	if err != nil {
		return nil, err
	}
	lowRank, ok := p.(stage.LowRank)
	if ok {
		_, random := lowRank.Approximation(nil).FeatureSource.(stage.RandomFeatures)
		ok = !random
	}
	if !ok {
		return nil, fmt.Errorf("--precond %s: want one of landmarks, such as nystrom or rpcholesky", o.Precond)
	}
	return lowRank, nil
}

// approximation returns the landmarks of the options, or those of the configuration if the options name none.
func (o *Options) approximation(p *stage.Problem) (*stage.Approximation, error) {
	if o.Precond == "" && o.Rank == 0 && p.Z != nil && p.Z.Map() == nil {
		z := *p.Z
		z.Spectral = false
		return &z, nil
	}
	lowRank, err := o.landmarkKind()
	if err != nil {
		return nil, err
	}
	d := p.Defaults()
	d.S = cmp.Or(o.Rank, min(max(500, p.N/5), p.N, 1000)) // see the help text of --rank
	withDefaults, err := lowRank.WithDefaults(d)
	if err != nil {
		return nil, err
	}
	z := withDefaults.(stage.LowRank).Approximation(p.Kernel)
	z.Spectral = false
	return z, nil
}

// scorePath sets the scores from probes in one subspace for all λ (leaveout.Path). It returns an error for groups of
// rows that differ. If equal rows cannot be left out together, the scores have no interval, and NoIntervalReason says
// so.
func (r *Result) scorePath(ctx context.Context, b stage.Bench, q *leaveout.Problem, o *Options) error {
	p := b.Problem()
	if q.Groups != nil {
		return fmt.Errorf("leave-one-out by probes cannot leave out groups (%s): --exact-below %d uses dense factors, "+
			"if they fit into the memory", r.Repeats.Rule, r.N)
	}
	z, err := o.approximation(p)
	if err != nil {
		return err
	}
	k, err := b.K(ctx, p.LowRankBytes(z.S))
	if err != nil {
		return err
	}
	landmarks, err := b.Z(ctx, *z)
	if err != nil {
		return err
	}
	r.KError = k.Choice().Error + k.Error // error of the stored K, and of products with it
	r.Precond, r.S, q.KError = landmarks.Text, landmarks.Z.D, r.KError
	if factor := landmarks.Factor; factor != nil && factor.Certain() {
		q.SketchExcess = factor.Rounding + r.KError
	}
	b.Notify(ctx, stage.Event{Stage: stage.Eigenvalues, Remaining: -1})
	if r.Repeats.Grouped > 0 && (q.Classification || p.Comm.Size() > 1) {
		q.FirstEqual, r.NoIntervalReason = nil, "probes can do so only for a regression in one process; "+
			"--exact-below uses dense factors"
	}
	m, err := precond.New(ctx, q.Merged(landmarks.Z), z.LambdaP,
		&precond.Options{Form: precond.FormEigen, Comm: p.Comm})
	if err != nil {
		return err
	}
	r.Scores, err = leaveout.Path(ctx, k, m, p.Y, o.Lambdas, q)
	if r.NoIntervalReason != "" {
		for i := range r.Scores {
			e := &r.Scores[i].Error
			if e.Lo, e.Hi, e.Method = 0, math.Inf(1), "none"; q.Classification {
				e.Hi = 1
			}
		}
	}
	return err
}
