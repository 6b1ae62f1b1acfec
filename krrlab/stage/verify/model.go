package verify

import (
	"context"
	"fmt"
	"math"
	"slices"
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
	// Train is the training data, with features as they were read or scaled like those of the model. Only the first n
	// rows are used, where n is the number of points of the model. Without training data, the labels of a classifier
	// are recovered from the answer itself, and the residual of a regression is unknown.
	Train *datasets.Dataset
	Test  *datasets.Dataset // test data, with features as read or scaled; nil: none
	// Memory limits the memory of K, 8n² bytes. If K does not fit, its rows are formed again in every pass. Default:
	// half of the available memory.
	Memory int64 `flag:"memory" check:">=0" unit:"bytes"`
	// Passes is the number of passes over K for the interval of κ. Default: 30 if K is stored, else 3.
	Passes  int                     `flag:"passes" check:">=1"`
	Seed    uint64                  `flag:"seed" default:"1" help:"seed of the Lanczos start"`
	Monitor func(stage.Event) error // receives progress, and ends the work if it returns an error (stage.Watch)
	// Comm has the ranks that share the rows of K. All ranks call Model together, with the same model and data, and
	// each has its own Memory. Default: nil, no ranks.
	Comm comm.Comm
}

// Help returns the longer help texts of the flags.
func (Options) Help() map[string]string {
	return map[string]string{
		"passes": "passes over K for the interval of κ (default: 30 if K fits into the memory, else 3)",
		"memory": "memory that K may take in float64, such as 2GB (default: half of what is available)",
	}
}

// Values of Verification.Targets: the source of the targets.
const (
	targetsGiven     = "given"
	targetsRecovered = "recovered from the answer"
	targetsUnknown   = "unknown"
)

// Verification is the result of the verification of a model.
type Verification struct {
	Model           string                 `json:"model"` // name of the data set that the model was fitted to
	N               int                    `json:"n"`
	D               int                    `json:"d"`
	T               int                    `json:"t"`
	Kernel          kernel.Spec            `json:"kernel"`
	Lambda          float64                `json:"lambda"`
	Tol             float64                `json:"tol"`              // tolerance of the fit
	ClaimedResidual *float64               `json:"claimed_residual"` // residual according to the model file; nil: none
	Targets         string                 `json:"targets"`          // source of the targets
	Read            []*datasets.ReadReport `json:"read,omitempty"`   // how the files were read, the training file first
	Mean            []float64              `json:"mean,omitempty"`   // mean that the model subtracted from the targets
	// Weighted states whether the model has weights W of the rows. The matrix A of the system is then K+λW⁻¹ instead of
	// K+λI.
	Weighted bool `json:"weighted,omitempty"`

	Residuals []float64    `json:"true_residuals"`    // ‖W^½(y_j−Ac_j)‖₂/‖W^½y_j‖₂ of each column
	Residual  stage.Number `json:"true_residual"`     // largest of Residuals; null if the targets are unknown
	Rounding  stage.Number `json:"residual_rounding"` // bound of the error of Residual
	Norm      stage.Number `json:"residual_norm"`     // upper bound of the largest ‖W^½(y_j−Ac_j)‖₂

	Spectrum // rigorous bounds of the spectrum of K+λI, without weights

	PredictionBound stage.Number   `json:"prediction_bound"` // largest √k(x,x)·‖r_j‖₂/(2√λ) over the training points
	TestN           int            `json:"test_n"`
	TestError       stage.Number   `json:"test_error"`        // share of wrong labels, or RMSE
	Classes         *model.Classes `json:"classes,omitempty"` // confusion of the classes
	OpenShare       stage.Number   `json:"labels_open"`       // share of test labels that are not proved

	KStored bool    `json:"k_stored"` // whether K was stored; otherwise each pass formed its rows again
	Seconds float64 `json:"seconds"`
}

// Model verifies a saved model in float64. It computes the residual with a bound of its rounding error, an interval for
// κ(K+λI), and bounds for the difference of the predictions from those of the exact solution. It returns an error if
// the data do not fit the model, or if the model file lacks the weights or the matrix of the fit.
//
// The cost is n²d/2 multiply-adds for K, or n²d in each pass if K is not stored, and n·d for each test point. The
// condition number κ(M⁻¹A) of the preconditioned system is not recomputed: the preconditioner M is not a part of the
// model, and the answer does not depend on it.
func Model(ctx context.Context, savedModel *model.Model, options Options) (*Verification, error) {
	ctx, finishWatch := stage.Watch(ctx)
	verification, err := verifyModel(ctx, savedModel, options)
	return verification, finishWatch(verification != nil, err)
}

// verifyModel does the same as Model, but does not handle the errors of the Monitor.
func verifyModel(ctx context.Context, savedModel *model.Model, options Options) (*Verification, error) {
	start := time.Now()
	checker, err := newChecker(savedModel, &options)
	if err != nil {
		return nil, err
	}
	checker.matrix, err = New(ctx, options.Comm, checker.result.Kernel, savedModel.X, options.Memory,
		checker.progressOf(ctx, stage.Kernel))
	if err != nil {
		return nil, err
	}
	checker.matrix.Weights = savedModel.Weights
	checks := []func(context.Context) error{checker.checkResidual, checker.checkSpectrum, checker.checkPredictions}
	for _, check := range checks {
		if err := check(ctx); err != nil {
			return nil, err
		}
	}
	checker.result.KStored = checker.matrix.Stored
	checker.result.Seconds = time.Since(start).Seconds()
	return checker.result, nil
}

// checker is the state of a verification.
type checker struct {
	model         *model.Model
	options       *Options
	result        *Verification
	matrix        *Matrix
	c, y          []float64         // coefficients and targets, n×t; y is nil if the targets are unknown
	residualNorms *Residual         // residual of c; nil until checkResidual, and if y is unknown
	test          *datasets.Dataset // scaled test data
}

// newChecker checks the model and the data, replaces zeros in the options by the defaults, and sets the fields of the
// result that need no computation. It returns an error if the data do not fit the model, or if a verification needs
// numbers that the file of the model does not have.
func newChecker(savedModel *model.Model, options *Options) (*checker, error) {
	if savedModel.Weighted && savedModel.Weights == nil {
		return nil, fmt.Errorf("the model was fitted with weights, which its file does not have: its residual " +
			"cannot be recomputed")
	}
	if kernel.AsPrecomputed(savedModel.Kernel) != nil {
		return nil, fmt.Errorf("the model is of a precomputed K, which its file does not have: the residual that " +
			"the fit reported was taken with the entries themselves; experiments/peers/verify_model.py --matrix " +
			"takes K")
	}
	n, d, t := savedModel.Dims()
	spec, err := kernel.ToSpec(savedModel.Kernel)
	if err != nil {
		return nil, err
	}
	if options.Monitor == nil {
		options.Monitor = func(stage.Event) error { return nil }
	}
	if err := schema.Complete(options); err != nil {
		return nil, err
	}
	options.Memory = accel.AvailableMemory(options.Memory, 2).Limit
	checker := &checker{model: savedModel, options: options, c: mat.DenseCopyOf(savedModel.C).RawMatrix().Data}
	checker.result = &Verification{
		Model: savedModel.Origin.Dataset, N: n, D: d, T: t, Kernel: spec, Lambda: savedModel.Lambda,
		Tol: savedModel.Origin.Tol, ClaimedResidual: savedModel.Origin.TrueResidual, Targets: targetsUnknown,
		Mean: savedModel.Mean, Weighted: savedModel.Weighted,
	}
	stage.SetUnknown(checker.result)
	for _, dataset := range []*datasets.Dataset{options.Train, options.Test} {
		if dataset == nil {
			continue
		}
		if err := dataset.Check(); err != nil {
			return nil, err
		}
		// Held-out rows have the same report as the training rows.
		if report := dataset.ReadReport; report != nil && !slices.Contains(checker.result.Read, report) {
			checker.result.Read = append(checker.result.Read, report)
		}
	}
	if options.Train != nil {
		if err := checker.setTargets(options.Train); err != nil {
			return nil, err
		}
	}
	if options.Test != nil {
		checker.test, err = checker.applyScaling("test", options.Test)
	}
	return checker, err
}

// applyScaling returns the data, scaled like the points of the model. It returns an error unless they have the columns,
// the task and the dimension of the model. role names the data in errors.
func (c *checker) applyScaling(role string, dataset *datasets.Dataset) (*datasets.Dataset, error) {
	switch err := dataset.CheckColumns(c.model.Columns, "the model"); {
	case err != nil:
		return nil, err
	case dataset.Task != c.model.Task():
		return nil, fmt.Errorf("the %s data are for %v, the model for %v", role, dataset.Task, c.model.Task())
	case dataset.Dim() != c.result.D:
		return nil, fmt.Errorf("the %s data have %d features, the model was fitted on %d", role, dataset.Dim(),
			c.result.D)
	}
	return c.model.Scaling.Apply(dataset)
}

// progressOf returns a function that reports the progress of the given stage to the Monitor.
func (c *checker) progressOf(ctx context.Context, name stage.Name) func(completed, total int) {
	return func(completed, total int) {
		stage.Notify(ctx, c.options.Monitor, stage.Event{Stage: name, Done: completed, Total: total, Remaining: -1})
	}
}

// setTargets sets c.y from the training data. It returns an error unless their points are those of the model.
func (c *checker) setTargets(train *datasets.Dataset) error {
	train, err := c.applyScaling("training", train.Head(c.result.N))
	if err != nil {
		return err
	}
	if n := train.Len(); n < c.result.N {
		return fmt.Errorf("the training data have %d rows, the model was fitted on %d", n, c.result.N)
	}
	if i := firstDifference(train.X, c.model.X); i >= 0 {
		return fmt.Errorf("row %d of the training data is not the model's: these are not the data, or not the "+
			"order, that it was fitted on", i)
	}
	y, err := c.model.Coding().EncodeForFit(train)
	if err != nil {
		return err
	}
	c.y, c.result.Targets = y.RawMatrix().Data, targetsGiven
	return nil
}

// firstDifference returns the index of the first row in which the points differ by more than the rounding of float32,
// or −1 if there is none.
func firstDifference(a, b points.Points) int {
	n, d := a.Dims()
	x, z := make([]float64, d), make([]float64, d)
	for i := range n {
		a.RowTo(x, i)
		b.RowTo(z, i)
		for j, v := range x {
			// 1e-6 allows for about 8 roundings to float32. Differences of up to 1e-36 are ignored.
			if math.Abs(v-z[j]) > 1e-6*max(math.Abs(v), math.Abs(z[j]), 1e-30) {
				return i
			}
		}
	}
	return -1
}

// checkResidual computes the norms of the columns of the residual R = Y − AC, and the bound of predictions that follows
// from them. If Y was not given, it first recovers the labels of a classifier. Without targets it sets nothing.
func (c *checker) checkResidual(ctx context.Context) error {
	c.matrix.Progress = c.progressOf(ctx, stage.Residual)
	product, rounding, err := c.matrix.Apply(ctx, c.c, c.result.T, c.result.Lambda)
	if err != nil {
		return err
	}
	if c.y == nil && c.model.Labels != nil {
		if c.y = recoverLabels(product, c.result.T); c.y != nil {
			c.result.Targets = targetsRecovered
		}
	}
	if c.y == nil {
		return nil
	}
	c.residualNorms = c.matrix.Residual(product, rounding, c.c, c.y, c.result.T, c.result.Lambda)
	for j, norm := range c.residualNorms.Norms {
		relative := 0.0
		if norm > 0 {
			relative = norm / c.residualNorms.TargetNorms[j]
		}
		c.result.Residuals = append(c.result.Residuals, relative)
	}
	upperNorms, norm := c.residualNorms.upperNorms(), 0.0
	for _, upperNorm := range upperNorms {
		norm = max(norm, upperNorm)
	}
	worst, upper := c.residualNorms.worstRelative(c.residualNorms.Norms), c.residualNorms.worstRelative(upperNorms)
	bound := math.Sqrt(c.matrix.MaxDiagonal) * norm / (2 * math.Sqrt(c.result.Lambda))
	c.result.Residual, c.result.Rounding = stage.Number(worst), stage.Number(upper-worst)
	c.result.Norm, c.result.PredictionBound = stage.Number(norm), stage.Number(bound)
	return nil
}

// recoverLabels returns the ±1 coding closest to v = AC, which has t columns. The answer C solves the problem with
// these targets, whatever the training labels were. recoverLabels returns nil unless the coding is unambiguous: every
// number is within ½ of its code, and, for t > 1, every row has exactly one +1.
func recoverLabels(v []float64, t int) []float64 {
	y := make([]float64, len(v))
	for p, value := range v {
		y[p] = math.Copysign(1, value)
		if !(math.Abs(value-y[p]) <= 0.5) {
			return nil
		}
	}
	for i := 0; t > 1 && i < len(y); i += t {
		var sum float64
		for _, value := range y[i : i+t] {
			sum += value
		}
		if sum != float64(2-t) { // the sum of one 1 and t−1 times −1
			return nil
		}
	}
	return y
}

// checkSpectrum sets the bounds of κ(K+λI) and of the eigenvalues of K.
func (c *checker) checkSpectrum(ctx context.Context) error {
	passes := c.options.Passes
	if passes == 0 {
		passes = 3
		if c.matrix.Stored { // a pass over a stored K takes little time
			passes = 30
		}
	}
	c.matrix.Progress = c.progressOf(ctx, stage.Lanczos)
	spectrum, err := c.matrix.Cond(ctx, c.result.Lambda, passes, rng.New(c.options.Seed).Sub("verify"))
	if err == nil {
		c.result.Spectrum = *spectrum
	}
	return err
}

// checkPredictions predicts the test points, and sets the test error and the share of labels that may differ in the
// exact solution. It does nothing without test data, or if the residual is unknown.
func (c *checker) checkPredictions(ctx context.Context) error {
	if c.test == nil || c.residualNorms == nil {
		return nil
	}
	c.matrix.Progress = c.progressOf(ctx, stage.Predict)
	prediction, err := c.matrix.Predict(ctx, c.test.X, c.c, c.result.T, c.residualNorms, c.result.Lambda)
	if err != nil {
		return err
	}
	c.result.TestN = c.test.Len()
	c.model.AddMean(prediction.F)
	decisions := mat.NewDense(c.result.TestN, c.result.T, prediction.F)
	if err := model.CheckDecision(decisions); err != nil {
		return err
	}
	scored := &model.Prediction{Labels: c.model.Labels, Decision: decisions}
	if c.model.Labels == nil {
		scored.Value = mat.Col(nil, 0, decisions)
		if c.test.HasAnswers() && len(c.test.MoreTargets)+1 == c.result.T {
			c.result.TestError = stage.Number(scored.Score(c.test).RMSE)
		}
		return nil
	}
	scored.Class = c.model.Coding().Decode(decisions)
	if c.test.HasAnswers() {
		score := scored.Score(c.test)
		c.result.TestError, c.result.Classes = stage.Number(score.ErrorRate), score.Classes
	}
	c.result.OpenShare = stage.Number(prediction.OpenShare())
	return nil
}
