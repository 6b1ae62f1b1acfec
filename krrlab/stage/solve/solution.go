package solve

import (
	"context"
	"fmt"
	"path/filepath"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// Solution is the answer C of (K+λI)C = Y with all that is known of it. Its JSON is what
// `krrlab fit --json` writes, without the model. What happens after the solve (the test, the load
// before it) is the caller's to add.
type Solution struct {
	stage.Header
	Precond string       `json:"precond,omitempty"`
	Reason  string       `json:"precond_reason,omitempty"` // why landmarks, where there are no random features
	LambdaP stage.Number `json:"lambda_p"`
	// features, or rank of the landmarks' factor; 0 without a preconditioner
	S         int          `json:"s"`
	Features  string       `json:"features,omitempty"`  // distribution of the feature map
	Neighbors int          `json:"neighbors,omitempty"` // k of the sparse inverse
	Damping   float64      `json:"damping,omitempty"`   // its ω
	MaxIter   int          `json:"max_iter"`
	Solver    Solver       `json:"solver"`
	Form      string       `json:"precond_form,omitempty"`   // of the preconditioner's inverse
	Storage   string       `json:"storage"`                  // of K
	Choice    string       `json:"storage_reason,omitempty"` // why
	KBound    stage.Number `json:"kernel_error_bound"`       // predicted bound of ‖K_stored−K‖₂
	BLAS      string       `json:"blas"`
	Threads   int          `json:"threads"`
	Version   string       `json:"krrlab_version,omitempty"`

	Iterations int        `json:"iterations"` // in all
	Status     pcg.Status `json:"status"`     // how the solve ended
	// TrueResidual is the largest of TrueResiduals, ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂ of every column j,
	// recomputed from the answer as ResidualKind says.
	TrueResidual stage.Number `json:"true_residual"`
	// Rounding bounds the error of TrueResiduals with certainty, that of recomputing K included; unknown
	// where they were taken with K as stored. Converged means that the two together are at most τ.
	Rounding      stage.Number `json:"residual_rounding"`
	ResidualKind  string       `json:"true_residual_kind"`
	TrueResiduals []float64    `json:"true_residuals"`
	Roundings     []float64    `json:"residual_roundings,omitempty"`
	// SampledResidual is TrueResidual against K itself, estimated from 256 rows drawn at random and
	// the 32 of largest norm, computed in float64; unknown where TrueResidual is that already. Where K is
	// stored in an arithmetic that may fail for up to an eighth of the points, those far from the
	// origin, the rows of up to 1024 of them are looked at too. An estimate of their rounding is added.
	SampledResidual  stage.Number `json:"sampled_residual"`
	SampledResiduals []float64    `json:"sampled_residuals,omitempty"`
	// StorageResidual is ‖(K−K_stored)c_j‖₂/‖y_j‖₂ estimated from the same rows, with the rounding of
	// products and of the rows: the error of TrueResidual is at most that. Converged means that TrueResidual and 1.15
	// times this, or 1.15 times SampledResidual, are at most τ: 15 % are three standard errors of what is
	// spread over all rows. What a few rows hold that were not looked at is not in it.
	StorageResidual  stage.Number `json:"storage_residual"`
	StorageResiduals []float64    `json:"storage_residuals,omitempty"`
	SampledRows      int          `json:"sampled_rows,omitempty"` // that were looked at; 0 for none
	// how far the coefficients are from the solution at most; nil: unknown
	Error *bound.Errors `json:"error,omitempty"`
	// Stop is what was to end the iteration, and Criterion what was met: "residual" (Converged or pcg.Undecided),
	// "anorm", "labels", or "".
	Stop      bound.Stop `json:"stop"`
	Criterion string     `json:"criterion"`
	// LabelsOpen of LabelsOf rows may have another label in the solution, by Error.Bounds.
	LabelsOpen int          `json:"labels_open"`
	LabelsOf   int          `json:"labels_of,omitempty"` // 0: not counted
	Kappa      stage.Number `json:"kappa"`               // estimate of κ(M⁻¹A) from PCG's α, β; unknown of BlockPCG
	// certain bound of it, with landmarks, of K itself and not as stored; +Inf, null in JSON: none
	KappaBound stage.Number `json:"kappa_bound"`
	StatDim    stage.Number `json:"stat_dim_features"` // s_{λ_p}(ZZᵀ) = ‖U‖_F²

	// Threshold is what decides between two classes; nil for 0
	Threshold *Threshold `json:"threshold,omitempty"`

	TestN        int          `json:"test_n"`
	TestWeighted bool         `json:"test_weighted,omitempty"` // the test rows count by their weights in what follows
	TestError    stage.Number `json:"test_error"`              // a fraction
	RMSE         stage.Number `json:"rmse"`
	// TargetRMSE is that of each of several targets; RMSE, RelErr and R2 are then of all
	// answers together, whatever their units.
	TargetRMSE []float64    `json:"target_rmse,omitempty"`
	RelErr     stage.Number `json:"relative_error"`
	R2         stage.Number `json:"r2"`
	BestError  stage.Number `json:"best_possible_error"` // test_error or rmse, where known
	// Classes says which classes of the test are taken for which.
	Classes *model.Classes `json:"classes,omitempty"`
	// TrainError is the share of wrong labels, or the RMSE, of the rows of the fit with their weights, from y−λW⁻¹c;
	// unknown where the residual is too large for that.
	TrainError    stage.Number `json:"training_error"`
	TrainWeighted bool         `json:"training_weighted,omitempty"` // they count by their weights

	PeakBytes      int64        `json:"peak_bytes"`
	KBytes         int64        `json:"kernel_bytes"`
	KeptShare      stage.Number `json:"kernel_kept"`           // share of the entries that is kept; unknown of dense tiles
	DroppedBound   stage.Number `json:"kernel_dropped_bound"`  // of the ‖·‖₂ of the others
	KExactProducts bool         `json:"kernel_products_exact"` // of points in bytes: see gram.Choice
	Ranks          *Ranks       `json:"ranks,omitempty"`       // what they sent; nil without ranks
	Plan           *plan.Report `json:"plan,omitempty"`        // what was chosen; nil where nothing was left to the plan
	Tune           stage.Choice `json:"tune,omitempty"`        // of kernel and λ; nil where they were given
	Shared         []string     `json:"shared,omitempty"`      // stages taken from an earlier solve on the same problem
	Seconds        Seconds      `json:"seconds"`
	History        []HistRow    `json:"history"`

	store *checkpoint.Store // at the first rank; nil if there are none

	Model  *model.Model `json:"-"` // f, with C and the scaling of the training data
	System *System      `json:"-"` // that it is the answer of; nil in a solution read from JSON
	Result *pcg.Result  `json:"-"` // of PCG, BlockPCG or CG; nil for Direct, and from a Backend
}

// How a true residual was recomputed: Solution.ResidualKind, or recomputed.
const (
	InFloat64 = "K recomputed in float64"
	AsStored  = "K as stored"
	// ByRecurrence: it was not; the last row of the History has it.
	ByRecurrence = "by recurrence"
)

// recomputed says that a true residual was taken with K recomputed in an arithmetic.
func recomputed(a kernel.Arithmetic) string { return fmt.Sprintf("K recomputed in %v", a) }

// Seconds are the wall-clock seconds of the stages. Kernel is the forming of K (with
// storage recompute its tiles are formed within Solve), Features that of Z, Factor
// that of ZᵀZ and its factor, or of the direct solve's.
type Seconds struct {
	Load     float64 `json:"load"`
	Plan     float64 `json:"plan,omitempty"` // that it took to choose, and what was given up for Plan.Over
	Kernel   float64 `json:"kernel"`
	Features float64 `json:"features"`
	Factor   float64 `json:"factor"`
	Solve    float64 `json:"solve"`
	Residual float64 `json:"residual"`
	Predict  float64 `json:"predict"`
	Total    float64 `json:"total"`
}

// HistRow is one iteration of the solve.
type HistRow struct {
	Iteration int       `json:"iteration"`
	Residual  float64   `json:"residual"`          // worst column, by recurrence
	Columns   []float64 `json:"columns,omitempty"` // every column
	// Bound is of the worst column's ‖c_j−c_j*‖_A/‖c_j*‖_A, but for the error of K as stored.
	Bound stage.Number `json:"bound"`
}

// Ranks says who shared the work of a solve, and what a rank, the first, handed to the others. Times, peak memory and
// the bytes of K in a report are the first rank's as well.
type Ranks struct {
	Count   int     `json:"count"`
	OnNode  int     `json:"on_node,omitempty"` // of them on the first one's machine
	Library string  `json:"library,omitempty"`
	Bytes   int64   `json:"bytes"`   // all stages
	Seconds float64 `json:"seconds"` // in collectives, waiting for others included
}

// Threshold is what f(x) is compared with in a classifier of two classes, and what it was chosen by.
type Threshold struct {
	Value  float64      `json:"value"`
	Metric model.Metric `json:"metric,omitempty"` // that it makes best; "" of one that was given
	Class  string       `json:"of,omitempty"`     // the class whose F1 that is
	Loss   float64      `json:"loss,omitempty"`   // 1 − F1, or the metric, of the rows that it was chosen by
	Rows   string       `json:"rows,omitempty"`   // which these are
}

// String says the threshold, and where it comes from.
func (t *Threshold) String() string {
	if t.Metric == "" {
		return fmt.Sprintf("%.6g, as asked for", t.Value)
	}
	of := ""
	if t.Class != "" {
		of = " of " + safe.Name(t.Class)
	}
	return fmt.Sprintf("%.6g, the best for %s%s on %s: %s", t.Value, t.Metric.Name(), of, t.Rows, t.Metric.Text(t.Loss))
}

// NewSolution returns a solution that says which problem it is of, and nothing of the answer.
func NewSolution(h stage.Header) *Solution {
	s := &Solution{Header: h}
	stage.SetUnknown(s)
	return s
}

// RemoveCheckpoints removes the checkpoints of a solution that is safe elsewhere.
func (s *Solution) RemoveCheckpoints() error {
	if s.store == nil {
		return nil
	}
	return s.store.Clear(plan.ReportFile)
}

// PredictOptions are model options that report the prediction's progress to the Monitor, and ask for no more accuracy
// than the solve's tolerance gives, or than labels that are to be settled need.
func (s *Solution) PredictOptions() *model.Options {
	t := s.System
	return &model.Options{
		Accuracy: model.AccuracyFor(t.Tol), Float64: t.Stop.Rule == bound.Labels,
		Progress: stage.Progress(context.Background(), t.tell, stage.Predict), Comm: t.Comm,
	}
}

// finish fills in what is known at the end of the solve.
func (s *Solution) finish() {
	blas := accel.InUse()
	if blas.Path != "" { // a report is read elsewhere too: the file's folder says nothing there
		blas.Path = filepath.Base(blas.Path)
	}
	s.BLAS, s.Threads, s.PeakBytes = blas.String(), accel.Threads(), accel.PeakRSS()
	s.settle()
}

// Converged reports whether every column met the tolerance.
func (s *Solution) Converged() bool { return s.Status == pcg.Converged }

// Reached reports whether what was to end the iteration was met: Stop, or the residual.
func (s *Solution) Reached() bool { return s.Criterion != "" }

// CountOpenLabels counts the rows of a prediction with PredictOptions, of the points of d, whose label may change, the
// rounding of the prediction included.
func (s *Solution) CountOpenLabels(p *model.Prediction, d *datasets.Dataset) {
	if s.Error == nil || p.Labels == nil {
		return
	}
	m := *s.Model
	m.Error = &model.Error{Decision: s.Error.Decisions()}
	b, err := m.Bounds(d)
	if err != nil {
		return
	}
	rows, t := p.Decision.Dims()
	s.LabelsOf, s.LabelsOpen = rows, 0
	for i := range rows {
		s.LabelsOpen += bound.Open(mat.NewDense(1, t, p.Decision.RawRowView(i)), []float64{1}, b.RawRowView(i))
	}
}

// SetScore takes up the judgment on test data.
func (s *Solution) SetScore(score *model.Score) {
	s.TestN, s.TestWeighted, s.TargetRMSE, s.Classes = score.N, score.Weighted, score.Targets, score.Classes
	s.TestError, s.RMSE, s.RelErr = stage.Number(score.ErrorRate), stage.Number(score.RMSE), stage.Number(score.RelErr)
	s.R2, s.BestError = stage.Number(score.R2), stage.Number(score.BestError)
}

// trainedResidual is the relative residual up to which training errors are taken from it: it moves decision values by 1
// % of the targets in root mean square.
const trainedResidual = 0.01

// SetTraining judges the model on the rows that it was fitted on.
func (s *Solution) SetTraining(d *datasets.Dataset) {
	if !(s.TrueResidual <= trainedResidual) {
		return
	}
	p, err := s.Model.Trained(d)
	if err != nil {
		return
	}
	score := p.Score(d)
	s.TrainError, s.TrainWeighted = stage.Number(score.RMSE), score.Weighted
	if p.Labels != nil {
		s.TrainError = stage.Number(score.ErrorRate)
	}
}
