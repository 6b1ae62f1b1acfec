package verify

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Options are the options of Model. Zero values mean the defaults.
type Options struct {
	// Train is the training data, as read or scaled as the model's were; only the first n rows
	// count. Without it the labels of a classifier are recovered from the answer itself,
	// and a regression's residual stays unknown.
	Train *datasets.Dataset
	Test  *datasets.Dataset // likewise; nil means none
	// Memory is what K may take, 8n² bytes; where it takes more, rows are formed again for every pass.
	Memory  int64                   `flag:"memory" check:">=0" unit:"bytes"`
	Passes  int                     `flag:"passes" check:">=1"`
	Seed    uint64                  `flag:"seed" default:"1" help:"seed of the Lanczos start"`
	Monitor func(stage.Event) error // an error of it ends the work (stage.Watch)
	// Comm is the group of ranks that share the rows of K; all call Model together, with the same
	// model and data. Memory is then each rank's. Default: nil, no ranks.
	Comm comm.Comm
}

// Help has the texts of flags.
func (Options) Help() map[string]string {
	return map[string]string{
		"passes": "passes over K for the interval of κ (default: 30 if K fits into the memory, else 3)",
		"memory": "memory that K may take in float64, such as 2GB (default: half of what is available)",
	}
}

// Where the targets of a Verification come from.
const (
	targetsGiven     = "given"
	targetsRecovered = "recovered from the answer"
	targetsUnknown   = "unknown"
)

// Verification is what is proved of a model.
type Verification struct {
	Model   string              `json:"model"` // its data set
	N       int                 `json:"n"`
	D       int                 `json:"d"`
	T       int                 `json:"t"`
	Kernel  kernel.Spec         `json:"kernel"`
	Lambda  float64             `json:"lambda"`
	Tol     float64             `json:"tol"`              // asked at the fit
	Claimed *float64            `json:"claimed_residual"` // what the model file says; nil: nothing
	Targets string              `json:"targets"`
	Read    []*datasets.Reading `json:"read,omitempty"` // what was decided of the files, the training file first
	Mean    []float64           `json:"mean,omitempty"` // of the model: y is the targets less it

	Columns  []float64    `json:"true_residuals"`    // ‖y_j−Ac_j‖₂/‖y_j‖₂
	Residual stage.Number `json:"true_residual"`     // the worst; nil where the targets are unknown
	Rounding stage.Number `json:"residual_rounding"` // bound of its error
	Norm     stage.Number `json:"residual_norm"`     // the largest ‖y_j−Ac_j‖₂

	Spectrum // certain

	// Bound is the largest √k(x,x)·‖r_j‖₂/(2√λ) over the training points.
	Bound     stage.Number   `json:"prediction_bound"`
	TestN     int            `json:"test_n"`
	TestError stage.Number   `json:"test_error"`        // share of wrong labels, or RMSE
	Classes   *model.Classes `json:"classes,omitempty"` // which classes are taken for which
	Open      stage.Number   `json:"labels_open"`       // share of test labels that the bound leaves open

	Stored  bool    `json:"k_stored"`
	Seconds float64 `json:"seconds"`
}

// Model recomputes in float64 what can be proved of a model: the residual
// with its rounding, an interval for κ(K+λI), and how far the predictions can be from those of the
// exact answer. Cost: n²d/2 kernel terms, or a pass over n² of them each time where K does
// not fit, and n·d a test point. The preconditioner is no part of a model, so κ(M⁻¹A), on
// which the answer does not depend, is not recomputed.
func Model(ctx context.Context, m *model.Model, o Options) (*Verification, error) {
	ctx, ended := stage.Watch(ctx)
	v, err := verifyModel(ctx, m, o)
	return v, ended(v != nil, err)
}

func verifyModel(ctx context.Context, m *model.Model, o Options) (*Verification, error) {
	start := time.Now()
	c, err := newChecker(m, &o)
	if err != nil {
		return nil, err
	}
	if c.k, err = New(ctx, o.Comm, c.v.Kernel, m.X, o.Memory, c.watch(ctx, stage.Kernel)); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context) error{c.residual, c.spectrum, c.predict} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	c.v.Stored = c.k.Stored
	c.v.Seconds = time.Since(start).Seconds()
	return c.v, nil
}

// checker is a Verification under way.
type checker struct {
	m    *model.Model
	o    *Options
	v    *Verification
	k    *Matrix
	c, y []float64 // n×t; y nil where unknown
	r    *Residual
	test *datasets.Dataset // scaled
}

func newChecker(m *model.Model, o *Options) (*checker, error) {
	if m.Weighted {
		return nil, fmt.Errorf("the model was fitted with weights, which its file does not have: its residual " +
			"cannot be recomputed")
	}
	if kernel.AsPrecomputed(m.Kernel) != nil {
		return nil, fmt.Errorf("the model is of a precomputed K, which its file does not have: the residual that " +
			"the fit reported was taken with the entries themselves; experiments/peers/verify_model.py --matrix " +
			"takes K")
	}
	n, d, t := m.Dims()
	spec, err := kernel.ToSpec(m.Kernel)
	if err != nil {
		return nil, err
	}
	if o.Monitor == nil {
		o.Monitor = func(stage.Event) error { return nil }
	}
	if err := schema.Settle(o); err != nil {
		return nil, err
	}
	o.Memory = cmp.Or(o.Memory, accel.MemoryAvailable()/2)
	c := &checker{m: m, o: o, c: mat.DenseCopyOf(m.C).RawMatrix().Data, v: &Verification{
		Model: m.Origin.Dataset, N: n, D: d, T: t, Kernel: spec, Lambda: m.Lambda, Tol: m.Origin.Tol,
		Claimed: m.Origin.TrueResidual, Targets: targetsUnknown, Mean: m.Mean,
	}}
	stage.SetUnknown(c.v)
	for _, d := range []*datasets.Dataset{o.Train, o.Test} {
		if d != nil && d.Read != nil {
			c.v.Read = append(c.v.Read, d.Read)
		}
	}
	if o.Train != nil {
		if err := c.targets(o.Train); err != nil {
			return nil, err
		}
	}
	if o.Test != nil {
		c.test, err = c.scaled("test", o.Test)
	}
	return c, err
}

// scaled returns data scaled as the model's points are.
func (c *checker) scaled(what string, d *datasets.Dataset) (*datasets.Dataset, error) {
	switch err := d.CheckColumns(c.m.Columns, "the model"); {
	case err != nil:
		return nil, err
	case d.Task != c.m.Task():
		return nil, fmt.Errorf("the %s data are for %v, the model for %v", what, d.Task, c.m.Task())
	case d.Dim() != c.v.D:
		return nil, fmt.Errorf("the %s data have %d features, the model was fitted on %d", what, d.Dim(), c.v.D)
	}
	return c.m.Scaling.Apply(d)
}

func (c *checker) watch(ctx context.Context, name stage.Name) func(done, total int) {
	return func(done, total int) {
		stage.Tell(ctx, c.o.Monitor, stage.Event{Stage: name, Done: done, Total: total, Remaining: -1})
	}
}

// targets takes y from the training data, whose points must be the model's.
func (c *checker) targets(train *datasets.Dataset) error {
	train, err := c.scaled("training", train.Head(c.v.N))
	if err != nil {
		return err
	}
	if n := train.Len(); n < c.v.N {
		return fmt.Errorf("the training data have %d rows, the model was fitted on %d", n, c.v.N)
	}
	if i := firstDifference(train.X, c.m.X); i >= 0 {
		return fmt.Errorf("row %d of the training data is not the model's: these are not the data, or not the "+
			"order, that it was fitted on", i)
	}
	y, err := c.m.Coding().Encode(train)
	if err != nil {
		return err
	}
	c.y, c.v.Targets = y.RawMatrix().Data, targetsGiven
	return nil
}

// firstDifference returns the first row in which the points differ by more than the rounding of
// float32, or −1.
func firstDifference(a, b points.Points) int {
	n, d := a.Dims()
	x, z := make([]float64, d), make([]float64, d)
	for i := range n {
		a.RowTo(x, i)
		b.RowTo(z, i)
		for j, v := range x {
			if math.Abs(v-z[j]) > 1e-6*max(math.Abs(v), math.Abs(z[j]), 1e-30) {
				return i
			}
		}
	}
	return -1
}

// residual forms R, and recovers y where it was not given.
func (c *checker) residual(ctx context.Context) error {
	c.k.Progress = c.watch(ctx, stage.Residual)
	v, rounding, err := c.k.Apply(ctx, c.c, c.v.T, c.v.Lambda)
	if err != nil {
		return err
	}
	if c.y == nil && c.m.Labels != nil {
		if c.y = recover01(v, c.v.T); c.y != nil {
			c.v.Targets = targetsRecovered
		}
	}
	if c.y == nil {
		return nil
	}
	c.r = c.k.Residual(v, rounding, c.c, c.y, c.v.T, c.v.Lambda)
	for j, norm := range c.r.Norm {
		rel := 0.0
		if norm > 0 {
			rel = norm / c.r.Target[j]
		}
		c.v.Columns = append(c.v.Columns, rel)
	}
	worst, upper, norm := c.r.relative(false), c.r.relative(true), 0.0
	for j, v := range c.r.Norm {
		norm = max(norm, v+c.r.Rounding[j])
	}
	bound := math.Sqrt(c.k.Largest) * norm / (2 * math.Sqrt(c.v.Lambda))
	c.v.Residual, c.v.Rounding, c.v.Norm, c.v.Bound = stage.Number(worst), stage.Number(upper-worst),
		stage.Number(norm), stage.Number(bound)
	return nil
}

// recover01 returns the ±1 coding next to v = AC if that is plain: every number within ½ of
// its code, and in every row of several columns one +1. It is the problem that the answer
// solves, whatever the training labels were.
func recover01(v []float64, t int) []float64 {
	y := make([]float64, len(v))
	for p, x := range v {
		y[p] = math.Copysign(1, x)
		if !(math.Abs(x-y[p]) <= 0.5) {
			return nil
		}
	}
	for i := 0; t > 1 && i < len(y); i += t {
		var sum float64
		for _, x := range y[i : i+t] {
			sum += x
		}
		if sum != float64(2-t) {
			return nil
		}
	}
	return y
}

// spectrum bounds κ(A).
func (c *checker) spectrum(ctx context.Context) error {
	passes := c.o.Passes
	if passes == 0 {
		passes = 3
		if c.k.Stored {
			passes = 30
		}
	}
	c.k.Progress = c.watch(ctx, stage.Lanczos)
	s, err := c.k.Cond(ctx, c.v.Lambda, passes, rng.New(c.o.Seed).Sub("verify"))
	if err == nil {
		c.v.Spectrum = *s
	}
	return err
}

// predict predicts the test points, and counts the labels that the bound leaves open.
func (c *checker) predict(ctx context.Context) error {
	if c.test == nil || c.r == nil {
		return nil
	}
	c.k.Progress = c.watch(ctx, stage.Predict)
	p, err := c.k.Predict(ctx, c.test.X, c.c, c.v.T, c.r, c.v.Lambda)
	if err != nil {
		return err
	}
	c.v.TestN = c.test.Len()
	c.m.AddMean(p.F)
	f := mat.NewDense(c.v.TestN, c.v.T, p.F)
	if err := model.CheckDecision(f); err != nil {
		return err
	}
	pred := &model.Prediction{Labels: c.m.Labels, Decision: f}
	if c.m.Labels == nil {
		pred.Value = mat.Col(nil, 0, f)
		if c.test.HasAnswers() && len(c.test.More)+1 == c.v.T {
			c.v.TestError = stage.Number(pred.Score(c.test).RMSE)
		}
		return nil
	}
	pred.Class = c.m.Coding().Decode(f)
	if c.test.HasAnswers() {
		score := pred.Score(c.test)
		c.v.TestError, c.v.Classes = stage.Number(score.ErrorRate), score.Classes
	}
	c.v.Open = stage.Number(p.Open())
	return nil
}
