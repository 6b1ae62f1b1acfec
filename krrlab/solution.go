package krrlab

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/tune"
	"github.com/krrlab/lab/plots"
)

// Solution is the answer C of (K+λI)C = Y with all that is known of it. Its JSON is what
// `krrlab fit --json` writes, without the model. What happens after the solve (the test, the load
// before it) is the caller's to add.
type Solution struct {
	Header
	Precond  string `json:"precond,omitempty"`
	Reason   string `json:"precond_reason,omitempty"` // why landmarks, where there are no random features
	LambdaP  Number `json:"lambda_p"`
	S        int    `json:"s"`                  // features, or rank of the landmarks' factor; 0 without a preconditioner
	Features string `json:"features,omitempty"` // distribution of the feature map
	MaxIter  int    `json:"max_iter"`
	Solver   Solver `json:"solver"`
	Form     string `json:"precond_form,omitempty"` // of the preconditioner's inverse
	Repeat   int    `json:"repeat"`
	Storage  string `json:"storage"`                  // of K
	Choice   string `json:"storage_reason,omitempty"` // why
	KBound   Number `json:"kernel_error_bound"`       // predicted bound of ‖K_stored−K‖₂
	BLAS     string `json:"blas"`
	Threads  int    `json:"threads"`
	Version  string `json:"krrlab_version,omitempty"`

	Iterations int        `json:"iterations"` // in all
	Status     pcg.Status `json:"status"`     // how the solve ended
	// TrueResidual is the largest of TrueResiduals, ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂ of every column j,
	// recomputed from the answer as ResidualKind says.
	TrueResidual Number `json:"true_residual"`
	// Rounding bounds the error of TrueResiduals with certainty, that of recomputing K included; unknown
	// where they were taken with K as stored. Converged means that the two together are at most τ.
	Rounding      Number    `json:"residual_rounding"`
	ResidualKind  string    `json:"true_residual_kind"`
	TrueResiduals []float64 `json:"true_residuals"`
	Roundings     []float64 `json:"residual_roundings,omitempty"`
	// SampledResidual is TrueResidual against K itself, estimated from 256 rows drawn at random and
	// the 32 of largest norm, computed in float64; unknown where TrueResidual is that already. Where K is
	// stored in an arithmetic that may fail for up to an eighth of the points, those far from the
	// origin, the rows of up to 1024 of them are looked at too. An estimate of their rounding is added.
	SampledResidual  Number    `json:"sampled_residual"`
	SampledResiduals []float64 `json:"sampled_residuals,omitempty"`
	// StorageResidual is ‖(K−K_stored)c_j‖₂/‖y_j‖₂ estimated from the same rows, with the rounding of
	// products and of the rows: by how much at most TrueResidual is off. Converged means that TrueResidual and 1.15
	// times this, or 1.15 times SampledResidual, are at most τ: 15 % are three standard errors of what is
	// spread over all rows. What a few rows hold that were not looked at is not in it.
	StorageResidual  Number        `json:"storage_residual"`
	StorageResiduals []float64     `json:"storage_residuals,omitempty"`
	SampledRows      int           `json:"sampled_rows,omitempty"` // that were looked at; 0 for none
	Error            *bound.Errors `json:"error,omitempty"`        // how far the coefficients are from the solution at most; nil: unknown
	// Stop is what was to end the iteration, and Criterion what was met: "residual" (Converged), "anorm", "labels", or "".
	Stop      bound.Stop `json:"stop"`
	Criterion string     `json:"criterion"`
	// LabelsOpen of LabelsOf rows may have another label in the solution, by Error.Bounds.
	LabelsOpen int    `json:"labels_open"`
	LabelsOf   int    `json:"labels_of,omitempty"` // 0: not counted
	Kappa      Number `json:"kappa"`               // estimate of κ(M⁻¹A) from PCG's α, β
	KappaBound Number `json:"kappa_bound"`         // certain bound of it, with landmarks, of K itself and not as stored; +Inf, null in JSON: none
	StatDim    Number `json:"stat_dim_features"`   // s_{λ_p}(ZZᵀ) = ‖U‖_F²

	TestN     int    `json:"test_n"`
	TestError Number `json:"test_error"` // a fraction
	RMSE      Number `json:"rmse"`
	// TargetRMSE is that of each of several targets; RMSE, RelErr and R2 are then of all
	// answers together, whatever their units.
	TargetRMSE []float64 `json:"target_rmse,omitempty"`
	RelErr     Number    `json:"relative_error"`
	R2         Number    `json:"r2"`
	BestError  Number    `json:"best_possible_error"` // test_error or rmse, where known

	PeakBytes int64        `json:"peak_bytes"`
	KBytes    int64        `json:"kernel_bytes"`
	KWhole    bool         `json:"kernel_products_exact"` // of points in bytes: see gram.Choice
	Ranks     *Ranks       `json:"ranks,omitempty"`       // what they sent; nil without ranks
	Plan      *plan.Report `json:"plan,omitempty"`        // what was chosen; nil where nothing was left to the plan
	Tune      *tune.Result `json:"tune,omitempty"`        // that chose kernel and λ; nil where they were given
	Shared    []string     `json:"shared,omitempty"`      // stages taken from an earlier solve on the same problem
	Seconds   Seconds      `json:"seconds"`
	History   []HistRow    `json:"history"`

	Model  *model.Model `json:"-"` // f, with C and the scaling of the training data
	Result *pcg.Result  `json:"-"` // of PCG, BlockPCG or CG; nil for Direct, and from a Backend

	store *checkpoint.Store // of checkpoints, at the first rank; nil if there are none
	lab   *Lab
}

// How a true residual was recomputed.
const (
	exactKind  = "K recomputed in float64"
	storedKind = "K as stored"
	// recurrenceKind: it was not; the last row of the History has it.
	recurrenceKind = "by recurrence"
)

// Seconds are the wall-clock seconds of the stages. Kernel is the forming of K (with
// storage recompute its tiles are formed within Solve), Features that of Z, Factor
// that of ZᵀZ and its factor, or of the direct solve's.
type Seconds struct {
	Load     float64 `json:"load"`
	Plan     float64 `json:"plan,omitempty"` // that it took to choose, a race included but for what of it is kept
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
	// Bound is of the worst column's ‖c_j−c_j*‖_A/‖c_j*‖_A, but for what K is off as stored.
	Bound Number `json:"bound"`
}

var _ Stage = (*Solution)(nil)

// newSolution returns a solution that says what is asked, and nothing of the answer.
func (l *Lab) newSolution() *Solution {
	c := l.cfg
	s := &Solution{
		Header: l.header(), Stop: c.Stop, LambdaP: stage.Unknown, MaxIter: c.MaxIter, Solver: c.Solver, Repeat: c.Repeat, KBound: stage.Unknown,
		TrueResidual: stage.Unknown, Rounding: stage.Unknown, SampledResidual: stage.Unknown, StorageResidual: stage.Unknown,
		Kappa: stage.Unknown, KappaBound: stage.Unknown, StatDim: stage.Unknown,
		TestError: stage.Unknown, RMSE: stage.Unknown, RelErr: stage.Unknown, R2: stage.Unknown, BestError: stage.Unknown, lab: l,
	}
	if !l.plain() {
		s.Precond = l.precondName()
	}
	if p := l.approximation(); p != nil {
		s.LambdaP, s.S = Number(p.lambdaP), p.s
	}
	switch p := c.Precond.(type) {
	case Features:
		s.Features = p.String()
	case Nystrom, RPCholesky:
		if noFeatures(c.Kernel) {
			s.Reason = "the kernel has no random features"
		}
	}
	return s
}

// finish fills in what is known at the end of the solve.
func (s *Solution) finish() {
	blas := accel.InUse()
	if blas.Path != "" { // a report is read elsewhere too: the file's folder says nothing there
		blas.Path = filepath.Base(blas.Path)
	}
	s.BLAS, s.Threads, s.PeakBytes = blas.String(), accel.Threads(), accel.PeakRSS()
	for _, v := range []struct {
		worst *Number
		all   *[]float64
	}{{&s.TrueResidual, &s.TrueResiduals}, {&s.Rounding, &s.Roundings}, {&s.SampledResidual, &s.SampledResiduals}, {&s.StorageResidual, &s.StorageResiduals}} {
		*v.worst = stage.Unknown
		if *v.all != nil {
			*v.worst = Number(worst(*v.all))
		}
		if !v.worst.Known() { // JSON cannot carry them
			*v.all = nil
		}
	}
	if !s.TrueResidual.Known() { // nor is what rounding does to it
		s.Rounding, s.Roundings = stage.Unknown, nil
	}
}

// Converged reports whether every column met the tolerance.
func (s *Solution) Converged() bool { return s.Status == pcg.Converged }

// Reached reports whether what was to end the iteration was met: Stop, or the residual.
func (s *Solution) Reached() bool { return s.Criterion != "" }

// SetSettled counts the rows of a prediction with PredictOptions, of the points of d, whose label may change, the
// rounding of the prediction included.
func (s *Solution) SetSettled(p *model.Prediction, d *datasets.Dataset) {
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

func (s *Solution) stopText() string {
	text := fmt.Sprintf("%v: not met", s.Stop)
	if s.Criterion != "" {
		text = fmt.Sprintf("%v: %s", s.Stop, map[string]string{"residual": "the residual met the tolerance first", "anorm": "met by the bound of the error", "labels": "met by the labels of a sample"}[s.Criterion])
	}
	if s.LabelsOf > 0 {
		text += fmt.Sprintf("; %d of %d labels are settled, %.2g %% open", s.LabelsOf-s.LabelsOpen, s.LabelsOf, 100*float64(s.LabelsOpen)/float64(s.LabelsOf))
	}
	return text
}

// SetScore takes up the judgment on test data.
func (s *Solution) SetScore(score *model.Score) {
	s.TestN, s.TestError, s.RMSE = score.N, Number(score.ErrorRate), Number(score.RMSE)
	s.TargetRMSE = score.Targets
	s.RelErr, s.R2, s.BestError = Number(score.RelErr), Number(score.R2), Number(score.BestError)
}

// PredictOptions are model options that report the prediction's progress to the
// configuration's Monitor, and ask for no more accuracy than the solve's tolerance gives, or than labels that are to be
// settled need.
func (s *Solution) PredictOptions() *model.Options {
	o := s.lab.predictOptions()
	o.Progress, o.Comm = s.lab.watch(context.Background(), stage.Predict), s.lab.comm
	return o
}

// predictOptions are those of PredictOptions that say how accurate predictions are to be.
func (l *Lab) predictOptions() *model.Options {
	return &model.Options{Accuracy: model.AccuracyFor(l.cfg.Tol), Float64: l.cfg.Stop.Rule == bound.Labels}
}

// worst returns the largest of v, NaN if there is one.
func worst(v []float64) float64 {
	var w float64
	for _, x := range v {
		w = math.Max(w, x)
	}
	return w
}

func (s *Solution) String() string {
	if s.Model == nil && s.N == 0 {
		return "a solution without a problem; Lab.Solve makes one\n"
	}
	var b stage.Lines
	b.Width = 12
	b.Problem(&s.Header)
	switch {
	case s.LambdaP.Known():
		b.Add("solver", "%v, %s, s = %d, λ_p = %g, form %s", s.Solver, s.precondText(), s.S, s.LambdaP, s.Form)
	case s.Precond != "":
		b.Add("solver", "%v, preconditioner %s", s.Solver, s.Precond)
	default:
		b.Add("solver", "%v", s.Solver)
	}
	whole := ""
	if s.KWhole {
		whole = ", points in bytes, products exact in integers"
	}
	if s.Kernel.Name == "precomputed" {
		whole = "; given: the residual is of its entries, and no error is bounded, as K is not known to be positive semi-definite"
	}
	b.Add("K", "%s, %s%s%s", s.Storage, accel.Bytes(s.KBytes), stage.KernelBound(s.KBound), whole)
	b.Add("result", "%v%s%s", s.Status, s.iterationText(), s.residualText())
	if s.Error != nil {
		b.Add("error", "%v", s.Error)
	}
	if s.Stop.Rule != bound.Residual {
		b.Add("stop", "%s", s.stopText())
	}
	if s.Kappa.Known() {
		b.Add("κ(M⁻¹A)", "≈ %.3g (from the iteration's α, β)", s.Kappa)
	}
	if s.TestN > 0 {
		b.Add("test", "%v", model.Score{N: s.TestN, ErrorRate: float64(s.TestError), RMSE: float64(s.RMSE), Targets: s.TargetRMSE,
			RelErr: float64(s.RelErr), R2: float64(s.R2), BestError: float64(s.BestError)})
	}
	t := s.Seconds
	b.Took(t.Total, "load", t.Load, "kernel", t.Kernel, "features", t.Features, "factor", t.Factor,
		"solve", t.Solve, "residual", t.Residual, "predict", t.Predict)
	if p := s.Plan; p != nil {
		b.Add("plan", "chosen in %.2g s, predicted %.3g s and %s, took %.3g s; on another machine it may differ: %s asks for it by name",
			t.Plan, p.Seconds.Total, accel.Bytes(p.Bytes), t.Total-t.Load-t.Plan, p.Flags)
		if p.Race != "" {
			b.Add("", "race %s", p.Race)
		}
	}
	if s.Ranks != nil {
		b.Add("ranks", "%v", s.Ranks)
	}
	b.Add("machine", "%s, %d threads, peak memory %s", s.BLAS, s.Threads, accel.Bytes(s.PeakBytes))
	return b.String()
}

func (s *Solution) precondText() string {
	text := s.Precond
	switch text {
	case "features":
		text = s.Kernel.Shorten(s.Features)
	case "nystrom":
		text = Nystrom{}.String()
	case "rpcholesky":
		text = RPCholesky{}.String()
	}
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}

func (s *Solution) iterationText() string {
	if s.Iterations == 0 {
		return ""
	}
	return fmt.Sprintf(" after %d iterations", s.Iterations)
}

func (s *Solution) residualText() string {
	if !s.TrueResidual.Known() {
		if s.ResidualKind != recurrenceKind || len(s.History) == 0 {
			return ""
		}
		return fmt.Sprintf(", residual %.2e by recurrence, asked %.0e", s.History[len(s.History)-1].Residual, s.Tol)
	}
	text := fmt.Sprintf(", true residual %.2e", s.TrueResidual)
	if s.Rounding.Known() {
		text += fmt.Sprintf(" ± %.0e", s.Rounding)
	}
	text += fmt.Sprintf(" (%s", s.ResidualKind)
	if s.SampledResidual.Known() && s.StorageResidual.Known() {
		text += fmt.Sprintf("; about %.1e, off by %.0e, by %d rows in float64", s.SampledResidual, s.StorageResidual, s.SampledRows)
	}
	return text + fmt.Sprintf("), asked %.0e", s.Tol)
}

// Table gives a row for each number that is known of the answer.
func (s *Solution) Table() *plots.Table {
	t := &plots.Table{
		Title:   fmt.Sprintf("%s: %v", s.Dataset, s.Solver),
		Columns: []plots.Column{{Name: "quantity"}, {Name: "value", Format: "%.4g"}, {Name: "how"}},
	}
	t.Add("iterations", s.Iterations, s.Status.String())
	for _, v := range []struct {
		name  string
		value Number
		how   string
	}{
		{"true residual", s.TrueResidual, s.ResidualKind},
		{"its rounding", s.Rounding, "certain bound"},
		{"sampled residual", s.SampledResidual, fmt.Sprintf("%d rows in float64", s.SampledRows)},
		{"off by K as stored", s.StorageResidual, fmt.Sprintf("%d rows in float64", s.SampledRows)},
		{"κ(M⁻¹A)", s.Kappa, "from α, β"},
		{"κ(M⁻¹A) at most", s.KappaBound, "certain, from the trace of K−FFᵀ"},
		{"s_{λ_p}(ZZᵀ)", s.StatDim, "‖U‖_F²"},
		{"test error", s.TestError, fmt.Sprintf("%d points", s.TestN)},
		{"RMSE", s.RMSE, fmt.Sprintf("%d points", s.TestN)},
		{"R²", s.R2, fmt.Sprintf("%d points", s.TestN)},
		{"seconds", Number(s.Seconds.Total), "in all"},
	} {
		if v.value.Known() {
			t.Add(v.name, float64(v.value), v.how)
		}
	}
	return t
}

// ConvergenceSeries returns the worst relative residual of the columns against the
// iteration.
func (s *Solution) ConvergenceSeries() plots.Series {
	c := plots.Series{Name: s.Solver.String()}
	for _, h := range s.History {
		c.X = append(c.X, float64(h.Iteration))
		c.Y = append(c.Y, h.Residual)
	}
	return c
}

// boundSeries returns the bounds of the error against the iteration, as far as they are known.
func (s *Solution) boundSeries() plots.Series {
	b := plots.Series{Name: "bound of ‖c−c*‖_{A}/‖c*‖_{A}"}
	for _, h := range s.History {
		if h.Bound.Known() {
			b.X, b.Y = append(b.X, float64(h.Iteration)), append(b.Y, float64(h.Bound))
		}
	}
	return b
}

// Plot draws the convergence of the solve: the worst column's relative
// residual ‖y_j−Ac_j‖₂/‖y_j‖₂, by recurrence, and the bound of its error ‖c_j−c_j*‖_A/‖c_j*‖_A, against the iteration. A direct solve,
// which has no iterations, is drawn as the one residual it ended with.
func (s *Solution) Plot() *plots.Figure {
	c := s.ConvergenceSeries()
	if len(c.X) == 0 && s.TrueResidual.Known() {
		c.X, c.Y, c.Style = []float64{0}, []float64{float64(s.TrueResidual)}, plots.Points
	}
	all := []plots.Series{c}
	if b := s.boundSeries(); len(b.X) > 0 {
		all = append(all, b)
	}
	f := plots.Convergence(fmt.Sprintf("%s: %s, λ = %g", s.Dataset, s.Kernel.Short(), s.Lambda), s.Tol, all...)
	// Answers of zeros leave no residual at all, which a log axis cannot show.
	f.Y.Log = slices.ContainsFunc(c.Y, func(v float64) bool { return v > 0 })
	return f
}

// HTML gives the lines, the convergence where the solver iterated, and the numbers.
func (s *Solution) HTML() string {
	if len(s.History) < 2 {
		return plots.PreHTML(s.String()) + plots.FoldedHTML("the numbers", s.Table().HTML())
	}
	return stage.HTML(s)
}

// Ranks says who shared the work of a solve and what a rank, the first, handed to the
// others: as its counters have it, and as the formulas do. Times, peak memory and the
// bytes of K in a report are the first rank's as well.
type Ranks struct {
	Count   int    `json:"count"`
	OnNode  int    `json:"on_node,omitempty"` // of them on the first one's machine
	Library string `json:"library,omitempty"`

	Products       int     `json:"products"`        // with K as stored
	ProductBytes   int64   `json:"product_bytes"`   // of all products, counted
	ProductFormula int64   `json:"product_formula"` // Σ 8(nk+2), or 8(2nk+2) with float64 tiles; k columns a product
	Solves         int     `json:"solves"`          // with M
	SolveBytes     int64   `json:"solve_bytes"`     // counted
	SolveFormula   int64   `json:"solve_formula"`   // Σ 8(s+m)k, m of Z's n rows at the first rank
	Bytes          int64   `json:"bytes"`           // all stages
	Seconds        float64 `json:"seconds"`         // in collectives, waiting for others included
}

func (r *Ranks) String() string {
	s := fmt.Sprintf("%d", r.Count)
	if r.OnNode > 0 {
		s += fmt.Sprintf(" (%d on this machine)", r.OnNode)
	}
	if r.Products > 0 {
		p := int64(r.Products)
		s += fmt.Sprintf("; each sends %s per product (predicted %s)", accel.Bytes(r.ProductBytes/p), accel.Bytes(r.ProductFormula/p))
	}
	if r.Solves > 0 {
		p := int64(r.Solves)
		s += fmt.Sprintf(", %s per solve with M (predicted %s)", accel.Bytes(r.SolveBytes/p), accel.Bytes(r.SolveFormula/p))
	}
	return s + fmt.Sprintf("; %.1f s in collectives", r.Seconds)
}
