package solve

import (
	"context"
	"fmt"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// Solution is the answer C of (K+λI)C = Y with all its known properties. Its JSON, which excludes the model, is the
// output of `krrlab fit --json`. The caller adds the steps before and after the solve, such as loading the data and the
// test.
type Solution struct {
	stage.Header
	Approach
	Environment
	Outcome
	Residuals
	// Error bounds the distance of the coefficients from the solution; nil: unknown.
	Error *bound.Errors `json:"error,omitempty"`
	Scores
	KernelMatrix
	Ranks    *Ranks       `json:"ranks,omitempty"`    // traffic of the ranks; nil without ranks
	Plan     *plan.Report `json:"plan,omitempty"`     // how the plan chose the method; nil if it had no choice
	Tune     stage.Choice `json:"tune,omitempty"`     // the choice of kernel and λ; nil if they were configured
	Appended *Appended    `json:"appended,omitempty"` // rows that were appended to another problem; nil: none
	// Shared lists the parts of the work that an earlier solve of the same problem had done.
	Shared  []string     `json:"shared,omitempty"`
	Seconds Seconds      `json:"seconds"`
	History []HistoryRow `json:"history"`

	store     *checkpoint.Store // checkpoints, on the first rank only; nil if there are none
	residuals *mat.Dense        // residuals Y − AC of the answer; nil if they are unknown

	Model  *model.Model `json:"-"` // model f with coefficients C and the scaling of the training data
	System *System      `json:"-"` // system that was solved; nil for a solution read from JSON
	Result *pcg.Result  `json:"-"` // result of PCG, BlockPCG or CG; nil for Direct, and from a Backend
}

// Approach describes the solver of a Solution and its preconditioner M, which is ZZᵀ+λ_pI or a matrix with a sparse
// inverse (package vecchia).
type Approach struct {
	Precond string `json:"precond,omitempty"` // name of the kind of preconditioner
	// PrecondReason says why landmarks are used if the kernel has no random features.
	PrecondReason string       `json:"precond_reason,omitempty"`
	LambdaP       stage.Number `json:"lambda_p"` // ridge λ_p of the preconditioner
	// S is the number of columns of Z: of features, or the rank of the landmarks; 0 without a preconditioner.
	S         int          `json:"s"`
	Features  string       `json:"features,omitempty"`  // distribution of the feature map, or description of M
	Neighbors int          `json:"neighbors,omitempty"` // k of the sparse inverse
	Damping   float64      `json:"damping,omitempty"`   // damping ω of the sparse inverse
	MaxIter   int          `json:"max_iter"`
	Solver    Solver       `json:"solver"`
	Form      string       `json:"precond_form,omitempty"` // form in which M⁻¹ is applied (precond.Form)
	Kappa     stage.Number `json:"kappa"`                  // estimate of κ(M⁻¹A) from PCG's α, β; unknown for BlockPCG
	// KappaBound is a rigorous upper bound of κ(M⁻¹A) for landmarks, with K itself and not K̃ in A; +Inf, null in JSON,
	// if there is none.
	KappaBound stage.Number `json:"kappa_bound"`
	StatDim    stage.Number `json:"stat_dim_features"` // statistical dimension s_{λ_p}(ZZᵀ) = tr((ZZᵀ+λ_pI)⁻¹ZZᵀ)
}

// Environment is the program and the machine that computed a Solution.
type Environment struct {
	BLAS      string `json:"blas"`                     // name of the BLAS
	Threads   int    `json:"threads"`                  // number of threads
	Version   string `json:"krrlab_version,omitempty"` // version of krrlab
	PeakBytes int64  `json:"peak_bytes"`               // peak resident memory of the process
	// MixedArithmetic lists the BLAS and the instruction set of the iterations, in order, if the solve was resumed with
	// another BLAS or instruction set than before; "" otherwise.
	MixedArithmetic string `json:"mixed_arithmetic,omitempty"`
}

// arithmetic describes what determines the last digits of results on this machine: the BLAS and the instruction set.
func arithmetic() string {
	return fmt.Sprintf("%v, %v", accel.CurrentBLAS().Portable(), simd.CurrentPath())
}

// Outcome describes after how many iterations and why the iteration ended.
type Outcome struct {
	Iterations int        `json:"iterations"` // iterations of all runs
	Status     pcg.Status `json:"status"`     // how the solve ended
	// Stop is the stopping rule of the iteration, and Criterion the criterion that was met: "residual" or "predictions"
	// (Converged or pcg.Undecided), "anorm", "labels", or "" if none was met.
	Stop      bound.Stop `json:"stop"`
	Criterion string     `json:"criterion"`
	// Noise is the estimate of the noise in Y from which stop rule predictions derived the tolerance Tol; nil if the
	// rule did not end the iteration.
	Noise *bound.Noise `json:"noise,omitempty"`
	// UndecidedLabels is the number of labels that may differ in the exact solution according to Error.Bounds, among
	// the CheckedLabels labels that were checked.
	UndecidedLabels int `json:"labels_open"`
	CheckedLabels   int `json:"labels_of,omitempty"` // number of checked labels; 0: none
}

// Residuals are the true residuals of the answer, with bounds and estimates of their errors.
type Residuals struct {
	// TrueResidual is the largest of ColumnTrueResiduals, which are ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂ for every column j. They
	// are computed from the coefficients c_j with the matrix that ResidualKind describes: K itself, recomputed, or the
	// stored matrix K̃.
	//
	// The status Converged means that one of these numbers is at most the tolerance τ:
	//   - TrueResidual + Rounding, if TrueResidual was computed with K itself;
	//   - TrueResidual + 1.15·StorageResidual, if it was computed with K̃;
	//   - 1.15·SampledResidual, if it was computed with K̃ and this number is smaller.
	//
	// The factor 1.15 covers the sampling error of the rows described below; it is 1 if these are all rows
	// (bound.SamplingFactor).
	TrueResidual stage.Number `json:"true_residual"`
	// Rounding is a rigorous bound of the error of ColumnTrueResiduals, including the error of recomputing K. It is
	// unknown if they were computed with K̃.
	Rounding            stage.Number `json:"residual_rounding"`
	ResidualKind        string       `json:"true_residual_kind"`
	ColumnTrueResiduals []float64    `json:"true_residuals"`
	ColumnRoundings     []float64    `json:"residual_roundings,omitempty"`
	// SampledResidual estimates TrueResidual for K itself from 256 rows drawn at random and the 32 rows of largest
	// norm, computed in float64; an estimate of their rounding is added. It is unknown if TrueResidual is for K itself
	// already. If the arithmetic of K̃ may fail for points far from the origin, and these points are at most an eighth
	// of all, the rows of up to 1024 of them are also checked.
	SampledResidual        stage.Number `json:"sampled_residual"`
	ColumnSampledResiduals []float64    `json:"sampled_residuals,omitempty"`
	// StorageResidual estimates ‖(K−K̃)c_j‖₂/‖y_j‖₂ from the same rows, including the rounding of products and of the
	// rows. It is the estimated error of TrueResidual. The factor 1.15 allows for three standard errors of this
	// estimate if the error is spread over all rows; it does not cover an error that is concentrated in a few unchecked
	// rows.
	StorageResidual        stage.Number `json:"storage_residual"`
	ColumnStorageResiduals []float64    `json:"storage_residuals,omitempty"`
	SampledRows            int          `json:"sampled_rows,omitempty"` // number of checked rows; 0: none
}

// Scores are the errors of the predictions on test rows, on training rows and in cross-validation.
type Scores struct {
	// Threshold decides between two classes; nil means 0.
	Threshold *Threshold `json:"threshold,omitempty"`
	Folds     *Folds     `json:"folds,omitempty"` // cross-validation; nil if there was none
	// FoldsFailed is the reason why a cross-validation that was asked for has no result.
	FoldsFailed  string       `json:"folds_failed,omitempty"`
	TestN        int          `json:"test_n"`
	TestWeighted bool         `json:"test_weighted,omitempty"` // the test rows are weighted in the following results
	TestError    stage.Number `json:"test_error"`              // fraction of wrong labels
	RMSE         stage.Number `json:"rmse"`
	// TargetRMSE has the RMSE of each target if there are several. RMSE, RelErr and R2 then combine all targets,
	// whatever their units.
	TargetRMSE []float64    `json:"target_rmse,omitempty"`
	RelErr     stage.Number `json:"relative_error"`
	R2         stage.Number `json:"r2"`
	BestError  stage.Number `json:"best_possible_error"` // smallest possible TestError or RMSE, if known
	// Classes has the confusion matrix of the test rows.
	Classes *model.Classes `json:"classes,omitempty"`
	// TrainError is the fraction of wrong labels, or the RMSE, on the training rows with their weights W, computed from
	// the fitted values y−λW⁻¹c. It is unknown if the residual is too large for that.
	TrainError    stage.Number `json:"training_error"`
	TrainWeighted bool         `json:"training_weighted,omitempty"` // the training rows are weighted
}

// KernelMatrix describes the stored kernel matrix K̃.
type KernelMatrix struct {
	Storage          string       `json:"storage"`                  // format of the entries and tiles, such as float32
	StorageReason    string       `json:"storage_reason,omitempty"` // reason for this format
	KernelErrorBound stage.Number `json:"kernel_error_bound"`       // predicted bound of ‖K̃−K‖₂, for the stored K̃
	KBytes           int64        `json:"kernel_bytes"`             // memory of K̃ on a rank
	// KeptShare is the share of the entries that sparse tiles keep; unknown for dense tiles.
	KeptShare    stage.Number `json:"kernel_kept"`
	DroppedBound stage.Number `json:"kernel_dropped_bound"` // bound of the 2-norm of the dropped entries
	// HasExactProducts reports whether all inner products of points are exact, because all features are small integers.
	HasExactProducts bool `json:"kernel_products_exact"`
}

// Values of Solution.ResidualKind, which describe the matrix of the true residual. Other values are those of
// recomputedIn.
const (
	ResidualInFloat64  = "K recomputed in float64"
	ResidualInStored64 = "K as stored, in float64" // with a negligible storage error (gram.Matrix.Certified)
	ResidualInStored   = "K as stored"
	// ResidualRecursive means that the true residual was not computed; the last row of the History has the recursive
	// residual.
	ResidualRecursive = "by recurrence"
)

// recomputedIn returns the ResidualKind of a true residual computed with K recomputed in an arithmetic.
func recomputedIn(a kernel.Arithmetic) string { return fmt.Sprintf("K recomputed in %v", a) }

// Seconds are the wall-clock seconds of the stages. Kernel is the time for forming K; with storage recompute, the tiles
// of K are formed within Solve. Features is the time for forming Z, and Factor the time for ZᵀZ and its Cholesky
// factor, or for the factor of the direct solver.
type Seconds struct {
	Load float64 `json:"load"`
	// Plan is the time for choosing the method, and the time lost before switching to another solver
	// (plan.Report.Switched).
	Plan     float64 `json:"plan,omitempty"`
	Kernel   float64 `json:"kernel"`
	Features float64 `json:"features"`
	Factor   float64 `json:"factor"`
	Solve    float64 `json:"solve"`
	Residual float64 `json:"residual"`
	Predict  float64 `json:"predict"`
	Total    float64 `json:"total"`
}

// Appended describes how rows were appended to a problem (krrlab.Lab.Append, krrlab fit --extend).
type Appended struct {
	Rows      int      `json:"rows"`           // number of new rows, which come last
	KeptParts []string `json:"kept,omitempty"` // parts of the earlier solve that were used again
	NewParts  []string `json:"anew,omitempty"` // parts that were computed anew, with the reason
}

func (a *Appended) String() string {
	text := plural.Count(a.Rows, "row")
	if a.KeptParts != nil {
		text += "; kept: " + strings.Join(a.KeptParts, ", ")
	}
	if a.NewParts != nil {
		text += "; made anew: " + strings.Join(a.NewParts, "; ")
	}
	return text
}

// HistoryRow is one iteration of the solve.
type HistoryRow struct {
	Iteration int       `json:"iteration"`         // number of the row, from 0
	Residual  float64   `json:"residual"`          // largest recursive residual of all columns
	Columns   []float64 `json:"columns,omitempty"` // recursive residuals of all columns
	// Bound is the upper bound of ‖c_j−c_j*‖_A/‖c_j*‖_A for the worst column, apart from the storage error.
	Bound stage.Number `json:"bound"`
}

// Ranks describes the ranks that shared a solve, and the traffic of the first rank. Times, peak memory and the bytes of
// K in a report are also those of the first rank.
type Ranks struct {
	Count   int     `json:"count"`
	OnNode  int     `json:"on_node,omitempty"` // number of ranks on the machine of the first rank
	Library string  `json:"library,omitempty"`
	Bytes   int64   `json:"bytes"`   // bytes sent in all stages
	Seconds float64 `json:"seconds"` // time in collectives, including waiting for other ranks
}

// Threshold is the value with which a classifier of two classes compares f(x), with the criterion that chose it.
type Threshold struct {
	Value float64 `json:"value"`
	// Metric is the metric that the threshold optimizes; "" if the user set the threshold or if Source is not "".
	Metric model.Metric `json:"metric,omitempty"`
	Source string       `json:"source,omitempty"` // file of the extended model whose threshold was taken; "" for none
	Class  string       `json:"of,omitempty"`     // class that counts as positive in F1; "" for other metrics
	// Loss is 1 − F1 or, for another metric, the metric itself, on the rows that the threshold was chosen on.
	Loss float64 `json:"loss,omitempty"`
	Rows string  `json:"rows,omitempty"` // description of the rows that the threshold was chosen on
}

// Folds is the result of a cross-validation: each fold of the training rows is predicted by a fit to the others.
type Folds struct {
	Errors []float64 `json:"errors"` // error of each fold: share of wrong labels, or RMSE
	Mean   float64   `json:"mean"`   // mean of Errors
	// StandardError is the standard deviation of the k Errors over √k. It understates the error of Mean, as the fits
	// share rows and k is small: Mean ± 2 StandardError contains the error on new rows in some 70 to 80 % of cases.
	StandardError float64 `json:"standard_error"`
}

// String returns the threshold and how it was chosen.
func (t *Threshold) String() string {
	if t.Source != "" {
		return fmt.Sprintf("%.6g, that of %s", t.Value, safe.Name(t.Source))
	}
	if t.Metric == "" {
		return fmt.Sprintf("%.6g, as asked for", t.Value)
	}
	class := ""
	if t.Class != "" {
		class = " of " + safe.Name(t.Class)
	}
	return fmt.Sprintf("%.6g, the best for %s%s on %s: %s", t.Value, t.Metric.Name(), class, t.Rows,
		t.Metric.Text(t.Loss))
}

// NewSolution returns a solution for a problem in which all results are unknown.
func NewSolution(header stage.Header) *Solution {
	s := &Solution{Header: header}
	stage.SetUnknown(s)
	return s
}

// RemoveCheckpoints removes the checkpoints of the solve. Call it when the solution is stored elsewhere.
func (s *Solution) RemoveCheckpoints() error {
	if s.store == nil {
		return nil
	}
	return s.store.Clear(plan.ReportFile)
}

// PredictOptions returns options for predictions that report their progress to the Monitor. The requested accuracy is
// the one that the tolerance of the solve justifies, or float64 for stop rule labels.
func (s *Solution) PredictOptions() *model.Options {
	system := s.System
	return &model.Options{
		Accuracy: model.AccuracyFor(system.Tol), Float64: system.Stop.Rule == bound.ByLabels,
		Progress: stage.Progress(context.Background(), system.notify, stage.Predict), Comm: system.Comm,
	}
}

// finish sets the Environment and the largest residuals (setLargest), which are known only at the end of the solve.
func (s *Solution) finish() {
	s.BLAS, s.Threads, s.PeakBytes = accel.CurrentBLAS().Portable().String(), accel.Threads(), accel.PeakRSS()
	s.setLargest()
}

// Converged reports whether every column met the tolerance.
func (s *Solution) Converged() bool { return s.Status == pcg.Converged }

// CriterionMet reports whether the stopping rule or the tolerance of the residual was met.
func (s *Solution) CriterionMet() bool { return s.Criterion != "" }

// CountUndecidedLabels sets CheckedLabels to the number of the predictions, which must have been made with
// PredictOptions for the points of test, and UndecidedLabels to the number of those whose label may differ in the exact
// solution. It accounts for the rounding of the predictions. It does nothing if there is no error bound or no labels,
// or if the bounds cannot be computed for test.
func (s *Solution) CountUndecidedLabels(predictions *model.Prediction, test *datasets.Dataset) {
	if s.Error == nil || predictions.Labels == nil {
		return
	}
	boundedModel := *s.Model
	boundedModel.ErrorBounds = &model.ErrorBounds{Decision: s.Error.Decisions()}
	errorBounds, err := boundedModel.DecisionBounds(test)
	if err != nil {
		return
	}
	rows, t := predictions.Decision.Dims()
	s.CheckedLabels, s.UndecidedLabels = rows, 0
	for i := range rows {
		s.UndecidedLabels += bound.UndecidedRows(mat.NewDense(1, t, predictions.Decision.RawRowView(i)), []float64{1},
			errorBounds.RawRowView(i))
	}
}

// SetScore sets the results on the test data.
func (s *Solution) SetScore(score *model.Score) {
	s.TestN, s.TestWeighted, s.TargetRMSE, s.Classes = score.N, score.Weighted, score.TargetRMSEs, score.Classes
	s.TestError, s.RMSE, s.RelErr = stage.Number(score.ErrorRate), stage.Number(score.RMSE), stage.Number(score.RelErr)
	s.R2, s.BestError = stage.Number(score.R2), stage.Number(score.BestError)
}

// maxTrainingResidual is the largest relative residual for which training errors are computed if only its norm is
// known. A residual of this size changes fitted values by at most 1 % of the targets in root mean square.
const maxTrainingResidual = 0.01

// SetTrainingError sets TrainError, the error on the rows train that the model was fitted to. It does nothing if only
// the norm of the residual is known and this norm is above maxTrainingResidual, or if the model cannot predict the
// rows.
func (s *Solution) SetTrainingError(train *datasets.Dataset) {
	if !(s.TrueResidual <= maxTrainingResidual) && s.residuals == nil {
		return
	}
	prediction, err := s.Model.TrainingPrediction(train, s.residuals)
	if err != nil {
		return
	}
	score := prediction.Score(train)
	s.TrainError, s.TrainWeighted = stage.Number(score.RMSE), score.Weighted
	if prediction.Labels != nil {
		s.TrainError = stage.Number(score.ErrorRate)
	}
}
