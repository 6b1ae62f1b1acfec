package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/model"
)

// outcome is what a job has come to, in its folder.
type outcome struct {
	Version     int              `json:"version"`
	Stage       krrlab.StageName `json:"stage"`
	Value       json.RawMessage  `json:"value"`
	Interrupted bool             `json:"interrupted,omitempty"` // before its end
	// Coefficients of a solve are a file in the job's folder.
	Coefficients string `json:"coefficients,omitempty"`
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

// Options of RunJob.
type Options struct {
	Comm    comm.Comm                // the ranks, which call RunJob together; nil for one process
	Dirs    []string                 // folders to look for named data in; default: datasets.Dirs()
	Memory  int64                    // that a rank may take where the job says nothing; 0 for no limit
	Monitor func(krrlab.Event) error // as of Config; nil is silent
	Note    func(string)             // as of Checkpoint; nil is silent
}

// RunJob does what a job file says, on ranks or in one process, and writes the result beside
// it: what krrlab job is for, the ranks' side of a Backend. If ctx ends and the stage has part
// of its value, that is written, and ctx's error returned.
func RunJob(ctx context.Context, file string, o Options) error {
	c := comm.OrAlone(o.Comm)
	agree := func(err error) error { return comm.Agree(ctx, c, err) }
	j, lab, err := openJob(ctx, file, o)
	if err := agree(err); err != nil {
		return err
	}
	dir := filepath.Dir(file)
	value, err := lab.Run(ctx, j.Stage, j.Options)
	if value == nil {
		return err
	}
	out := &outcome{Version: jobVersion, Stage: j.Stage, Interrupted: err != nil}
	var failed error
	if c.Rank() == 0 {
		failed = out.write(dir, value)
	}
	if err == nil {
		return agree(failed)
	}
	return errors.Join(err, failed)
}

// write writes the value into the folder of the job, and removes the checkpoints of a solve that has
// converged once its coefficients are there.
func (out *outcome) write(dir string, value krrlab.Stage) (err error) {
	sol, _ := value.(*krrlab.Solution)
	if sol != nil {
		n, t := sol.Model.C.Dims()
		if out.Coefficients, err = writeNamed(dir, mat.DenseCopyOf(sol.Model.C).RawMatrix().Data, n, t); err != nil {
			return err
		}
	}
	if out.Value, err = json.Marshal(value); err != nil {
		return fmt.Errorf("krrlab: job: the value of %s: %w", out.Stage, err)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("krrlab: job: %w", err)
	}
	err = atomicfile.Write(filepath.Join(dir, resultFile), func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
	if err == nil && sol != nil && sol.Converged() {
		err = sol.Forget()
	}
	return err
}

// decode decodes the value of a job in the folder, with its coefficients if it is a solution.
func (out *outcome) decode(value any, dir string) error {
	if err := json.Unmarshal(out.Value, value); err != nil {
		return err
	}
	sol, ok := value.(*krrlab.Solution)
	if !ok {
		return nil
	}
	h, data, err := readNamed(dir, out.Coefficients)
	if err != nil {
		return err
	}
	c, ok := data.([]float64)
	if !ok || len(h.Shape) != 2 || len(c) != h.Shape[0]*h.Shape[1] || len(c) == 0 {
		return fmt.Errorf("coefficients of shape %v", h.Shape)
	}
	sol.Model = &model.Model{C: mat.NewDense(h.Shape[0], h.Shape[1], c)}
	return nil
}

// openJob reads a job and its data.
func openJob(ctx context.Context, file string, o Options) (*job, *krrlab.Lab, error) {
	j, err := readJob(file)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := j.Config.config()
	if err != nil {
		return nil, nil, fmt.Errorf("job %s: %w", file, err)
	}
	cfg.Comm, cfg.Monitor = o.Comm, o.Monitor
	cfg.Memory = cmp.Or(cfg.Memory, o.Memory)
	if cfg.Checkpoint != nil {
		cfg.Checkpoint.Note = o.Note
	}
	train, err := j.Data.read(ctx, filepath.Dir(filepath.Dir(file)), o.Dirs)
	if err != nil {
		return nil, nil, err
	}
	lab, err := krrlab.New(train, cfg)
	return j, lab, err
}
