package krrlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
)

// outcome is what a job has come to, in its folder.
type outcome struct {
	Version     int             `json:"version"`
	Stage       string          `json:"stage"`
	Value       json.RawMessage `json:"value"`
	Interrupted bool            `json:"interrupted,omitempty"` // before its end
}

// readOutcome reads the result of the job in the folder.
func readOutcome(dir *jobDir) (*outcome, error) {
	b, err := os.ReadFile(dir.result())
	if err != nil {
		return nil, fmt.Errorf("the ranks ended without a result: %w", err)
	}
	out := &outcome{}
	if err := json.Unmarshal(b, out); err != nil {
		return nil, fmt.Errorf("krrlab: %s: %w", dir.result(), err)
	}
	if out.Version != jobVersion {
		return nil, fmt.Errorf("%s is of format version %d, want %d: the ranks run another krrlab", dir.result(), out.Version, jobVersion)
	}
	return out, nil
}

// JobOptions of RunJob.
type JobOptions struct {
	Comm    comm.Comm    // the ranks, which call RunJob together; nil for one process
	Dirs    []string     // folders to look for named data in
	Memory  int64        // that a rank may take where the job says nothing; 0 for no limit
	Monitor func(Event)  // as of Config; nil is silent
	Note    func(string) // as of Checkpoint; nil is silent
}

// jobStages run the stages of jobs: each decodes the options and returns the stage's value, or
// part of it beside an error.
var jobStages = map[string]func(ctx context.Context, l *Lab, options json.RawMessage, dir string) (any, error){
	"statdim": func(ctx context.Context, l *Lab, options json.RawMessage, _ string) (any, error) {
		var o StatDimOptions
		if err := json.Unmarshal(options, &o); err != nil {
			return nil, err
		}
		return some(l.StatDim(ctx, o))
	},
	"sketch-size": func(ctx context.Context, l *Lab, options json.RawMessage, _ string) (any, error) {
		var o SketchSizeOptions
		if err := json.Unmarshal(options, &o); err != nil {
			return nil, err
		}
		return some(l.SketchSize(ctx, o))
	},
	"multilevel": func(ctx context.Context, l *Lab, options json.RawMessage, _ string) (any, error) {
		var o *MultiLevelOptions
		if err := json.Unmarshal(options, &o); err != nil {
			return nil, err
		}
		return some(l.MultiLevel(ctx, o))
	},
	"lambda-p": func(ctx context.Context, l *Lab, options json.RawMessage, _ string) (any, error) {
		var o LambdaPOptions
		if err := json.Unmarshal(options, &o); err != nil {
			return nil, err
		}
		return some(l.LambdaP(ctx, o))
	},
	"quality": func(ctx context.Context, l *Lab, options json.RawMessage, _ string) (any, error) {
		var o QualityOptions
		if err := json.Unmarshal(options, &o); err != nil {
			return nil, err
		}
		return some(l.Quality(ctx, o))
	},
	"solve": func(ctx context.Context, l *Lab, _ json.RawMessage, dir string) (any, error) {
		s, err := l.Solve(ctx)
		if err != nil {
			return nil, err
		}
		v, err := s.encode(dir)
		if err = comm.Agree(ctx, l.comm, err); err != nil { // only the first rank writes
			return nil, err
		}
		return v, nil
	},
}

// some returns nil for a nil pointer.
func some[T any](v *T, err error) (any, error) {
	if v == nil {
		return nil, err
	}
	return v, err
}

// RunJob does what a job file says, on ranks or in one process, and writes the result beside
// it: what krrlab job is for, the ranks' side of a Backend. If ctx ends and the stage has part
// of its value, that is written, and ctx's error returned.
func RunJob(ctx context.Context, file string, o JobOptions) error {
	c := comm.OrAlone(o.Comm)
	agree := func(err error) error { return comm.Agree(ctx, c, err) }
	j, lab, err := openJob(ctx, file, o)
	if err := agree(err); err != nil {
		return err
	}
	dir := filepath.Dir(file)
	value, err := jobStages[j.Stage](ctx, lab, j.Options, dir)
	if value == nil {
		return err
	}
	out := &outcome{Version: jobVersion, Stage: j.Stage, Interrupted: err != nil}
	var failed error
	if c.Rank() == 0 {
		failed = out.write(filepath.Join(dir, resultFile), value)
		if v, ok := value.(*solvedJob); ok && failed == nil {
			failed = v.forget()
		}
	}
	if err == nil {
		return agree(failed)
	}
	return errors.Join(err, failed)
}

// write writes the value and what is said of it.
func (out *outcome) write(name string, value any) (err error) {
	if out.Value, err = json.Marshal(value); err != nil {
		return fmt.Errorf("krrlab: job: the value of %s: %w", out.Stage, err)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("krrlab: job: %w", err)
	}
	return atomicfile.Write(name, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
}

// openJob reads a job and its data.
func openJob(ctx context.Context, file string, o JobOptions) (*job, *Lab, error) {
	j, err := readJob(file)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := j.Config.config()
	if err != nil {
		return nil, nil, fmt.Errorf("job %s: %w", file, err)
	}
	cfg.Comm, cfg.Monitor = o.Comm, o.Monitor
	if cfg.Memory == 0 {
		cfg.Memory = o.Memory
	}
	if cfg.Checkpoint != nil {
		cfg.Checkpoint.Note = o.Note
	}
	train, err := j.Data.read(ctx, filepath.Dir(filepath.Dir(file)), o.Dirs)
	if err != nil {
		return nil, nil, err
	}
	lab, err := New(train, cfg)
	return j, lab, err
}

// solvedJob is a Solution as JSON: its report, and the coefficients in a file.
type solvedJob struct {
	Report       *Report   `json:"report"`
	Sampled      []float64 `json:"sampled_residuals,omitempty"`
	Stored       []float64 `json:"storage_residuals,omitempty"`
	Rounding     []float64 `json:"residual_roundings,omitempty"`
	Converged    bool      `json:"converged"`
	Coefficients string    `json:"coefficients"` // file in the job's folder

	forget func() error // removes the checkpoints
}

// encode writes the coefficients into the folder, at the first rank, and returns the rest.
func (s *Solution) encode(dir string) (*solvedJob, error) {
	n, t := s.Model.C.Dims()
	v := &solvedJob{Report: s.Report(), Sampled: finiteOnly(s.SampledResidual), Stored: finiteOnly(s.StorageResidual), Rounding: finiteOnly(s.Rounding), Converged: s.converged, forget: func() error { return nil }}
	if s.converged {
		v.forget = s.Forget
	}
	if s.lab.comm.Rank() > 0 {
		return v, nil
	}
	var err error
	if v.Coefficients, err = writeNamed(dir, mat.DenseCopyOf(s.Model.C).RawMatrix().Data, n, t); err != nil {
		return nil, err
	}
	return v, nil
}

// decode is the inverse, for the problem of l.
func (v *solvedJob) decode(l *Lab, dir string) (*Solution, error) {
	h, data, err := readNamed(dir, v.Coefficients)
	if err != nil {
		return nil, err
	}
	n, _, t := l.Dims()
	c, ok := data.([]float64)
	if !ok || len(c) != n*t || len(h.Shape) != 2 || h.Shape[0] != n {
		return nil, fmt.Errorf("krrlab: the ranks returned coefficients of shape %v, want %d×%d", h.Shape, n, t)
	}
	nan := func(p *float64) float64 {
		if p == nil {
			return math.NaN()
		}
		return *p
	}
	r := v.Report
	s := &Solution{
		lab: l, remote: r, converged: v.Converged, Status: r.Status, Iterations: r.Iterations, TrueResidual: r.Residuals, ResidualKind: r.ResidualKind,
		SampledResidual: v.Sampled, StorageResidual: v.Stored, SampledRows: r.SampledRows, Rounding: v.Rounding, Kappa: nan(r.Kappa), KappaBound: nan(r.KappaBound), StatDim: nan(r.StatDim), History: r.History,
		Storage: r.Storage, Choice: r.Choice, KBound: nan(r.KBound), KBytes: r.KBytes, Form: r.Form, Seconds: r.Seconds, Ranks: r.Ranks,
	}
	if l.cfg.Precond == Nystrom || l.cfg.Precond == RPCholesky {
		s.Rank = *r.S
	}
	if s.TrueResidual == nil {
		s.TrueResidual = []float64{nan(r.TrueResidual)}
	}
	s.Model = l.model(mat.NewDense(n, t, c), s, time.Now())
	return s, nil
}

// solveRemote is Solve by the backend.
func (l *Lab) solveRemote(ctx context.Context) (*Solution, error) {
	dir, out, err := l.cfg.Backend.run(ctx, l, "solve", nil)
	if out == nil {
		return nil, err
	}
	defer dir.forget()
	v := &solvedJob{}
	if e := json.Unmarshal(out.Value, v); e != nil || v.Report == nil {
		return nil, errors.Join(err, fmt.Errorf("krrlab: the value of solve in %s is not a solution: %v", dir.result(), e))
	}
	if err != nil {
		return nil, err
	}
	return v.decode(l, dir.path(""))
}
