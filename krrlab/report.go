package krrlab

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// Report is all that is worth keeping of a fit, as numbers. Its JSON is what
// `krrlab fit --json` writes; a value that does not apply, or was not measured, is null.
type Report struct {
	Dataset string `json:"dataset"`
	Source  string `json:"source,omitempty"` // files or generator the points came from
	Note    string `json:"note,omitempty"`   // what is special about the data: a subset, a stand-in
	Task    string `json:"task"`
	N       int    `json:"n"`
	D       int    `json:"d"`
	T       int    `json:"t"`

	Kernel   kernel.Spec `json:"kernel"`
	Lambda   float64     `json:"lambda"`
	Precond  string      `json:"precond,omitempty"`
	LambdaP  *float64    `json:"lambda_p"`
	S        *int        `json:"s"`                  // features, or rank
	Features string      `json:"features,omitempty"` // distribution of the feature map
	Tol      float64     `json:"tol"`
	MaxIter  int         `json:"max_iter"`
	Solver   string      `json:"solver"`
	Form     string      `json:"precond_form,omitempty"`
	Repeat   int         `json:"repeat"`
	Storage  string      `json:"storage"`
	Choice   string      `json:"storage_reason,omitempty"`
	KBound   *float64    `json:"kernel_error_bound"` // predicted bound of ‖K_stored−K‖₂
	BLAS     string      `json:"blas"`
	Threads  int         `json:"threads"`
	Seed     uint64      `json:"seed"`
	Version  string      `json:"krrlab_version,omitempty"`

	Iterations      int       `json:"iterations"`
	Status          string    `json:"status"`
	TrueResidual    *float64  `json:"true_residual"`     // worst ‖y_j−Ac_j‖₂/‖y_j‖₂, recomputed
	Rounding        *float64  `json:"residual_rounding"` // certain bound of true_residual's error; null: K as stored, not bounded
	ResidualKind    string    `json:"true_residual_kind"`
	Residuals       []float64 `json:"true_residuals"`   // of every column
	SampledResidual *float64  `json:"sampled_residual"` // the worst column's, from rows of K in float64
	StorageResidual *float64  `json:"storage_residual"` // by the same rows: what true_residual is off by, K being stored
	Kappa           *float64  `json:"kappa"`            // estimate of κ(M⁻¹A) from α, β
	SampledRows     int       `json:"sampled_rows,omitempty"`
	KappaBound      *float64  `json:"kappa_bound"` // certain, with landmarks, of K itself and not as stored
	StatDim         *float64  `json:"stat_dim_features"`

	TestN     int      `json:"test_n"`
	TestError *float64 `json:"test_error"` // a fraction
	RMSE      *float64 `json:"rmse"`
	RelErr    *float64 `json:"relative_error"`
	R2        *float64 `json:"r2"`
	BestError *float64 `json:"best_possible_error"` // test_error or rmse, where known

	PeakBytes int64     `json:"peak_bytes"`
	KBytes    int64     `json:"kernel_bytes"`
	Ranks     *Ranks    `json:"ranks,omitempty"`
	Seconds   Seconds   `json:"seconds"`
	History   []HistRow `json:"history"`
}

// Seconds are the wall-clock seconds of the stages. Kernel is the forming of K (with
// storage recompute its tiles are formed within Solve), Features that of Z, Factor
// that of ZᵀZ and its factor, or of the direct solve's.
type Seconds struct {
	Load     float64 `json:"load"`
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
}

// Number returns a pointer to v, or nil if v is NaN or infinite, which JSON cannot
// carry.
func Number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// SetScore puts the judgement on test data into the report.
func (r *Report) SetScore(s *model.Score) {
	r.TestN = s.N
	r.TestError, r.RMSE, r.RelErr, r.R2 = Number(s.ErrorRate), Number(s.RMSE), Number(s.RelErr), Number(s.R2)
	r.BestError = Number(s.BestError)
}

// WriteFile writes the report as JSON to the named file, whole or not at all.
func (r *Report) WriteFile(name string) error {
	js, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("krrlab: report: %w", err)
	}
	return atomicfile.Write(name, func(w io.Writer) error {
		_, err := w.Write(append(js, '\n'))
		return err
	})
}

// String gives the report in a few aligned lines.
func (r *Report) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	data := r.Dataset
	if r.Note != "" {
		data += " (" + r.Note + ")"
	}
	line("data", "%s: %s, n = %d, d = %d, t = %d", data, r.Task, r.N, r.D, r.T)
	line("problem", "kernel %s, λ = %g", kernelWords(r.Kernel), r.Lambda)
	switch {
	case r.S != nil:
		line("solver", "%s, %s, s = %d, λ_p = %g, form %s", r.Solver, r.precondText(), *r.S, *r.LambdaP, r.Form)
	default:
		line("solver", "%s", r.Solver)
	}
	line("K", "%s, %s%s", r.Storage, Bytes(r.KBytes), bound(r.KBound))
	line("result", "%s%s%s", r.Status, r.iterationText(), r.residualText())
	if r.Kappa != nil {
		line("κ(M⁻¹A)", "≈ %.3g (from the iteration's α, β)", *r.Kappa)
	}
	if s := r.scoreText(); s != "" {
		line("test", "%s", s)
	}
	s := r.Seconds
	unit, text := timeWords(s.Total, lap{"load", s.Load}, lap{"kernel", s.Kernel}, lap{"features", s.Features}, lap{"factor", s.Factor},
		lap{"solve", s.Solve}, lap{"residual", s.Residual}, lap{"predict", s.Predict})
	line(unit, "%s", text)
	if r.Ranks != nil {
		line("ranks", "%s", r.Ranks)
	}
	line("machine", "%s, %d threads, peak memory %s", r.BLAS, r.Threads, Bytes(r.PeakBytes))
	return b.String()
}

func (r *Report) precondText() string {
	switch r.Precond {
	case Nystrom.String():
		return "Nyström landmarks"
	case RPCholesky.String():
		return "randomly pivoted Cholesky"
	}
	return withKernelWords(r.Features, r.Kernel)
}

func bound(b *float64) string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf(", ‖E‖₂ ≲ %.1e", *b)
}

func (r *Report) iterationText() string {
	if r.Iterations == 0 {
		return ""
	}
	return fmt.Sprintf(" after %d iterations", r.Iterations)
}

func (r *Report) residualText() string {
	if r.TrueResidual == nil {
		return ""
	}
	s := fmt.Sprintf(", true residual %.2e", *r.TrueResidual)
	if r.Rounding != nil {
		s += fmt.Sprintf(" ± %.0e", *r.Rounding)
	}
	s += fmt.Sprintf(" (%s", r.ResidualKind)
	if r.SampledResidual != nil && r.StorageResidual != nil {
		s += fmt.Sprintf("; about %.1e, off by %.0e, by %d rows in float64", *r.SampledResidual, *r.StorageResidual, r.SampledRows)
	}
	return s + fmt.Sprintf("), asked %.0e", r.Tol)
}

func (r *Report) scoreText() string {
	nan := func(p *float64) float64 {
		if p == nil {
			return math.NaN()
		}
		return *p
	}
	if r.TestN == 0 {
		return ""
	}
	return model.Score{N: r.TestN, ErrorRate: nan(r.TestError), RMSE: nan(r.RMSE), RelErr: nan(r.RelErr), R2: nan(r.R2), BestError: nan(r.BestError)}.String()
}

// Bytes formats a number of bytes with a decimal unit.
func Bytes(n int64) string { return accel.Bytes(n) }
