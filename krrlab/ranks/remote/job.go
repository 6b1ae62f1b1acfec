package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Names of the files in the folder of a job, and the version of their format.
const (
	jobFile    = "job.json"
	resultFile = "result.json"
	answerFile = "coefficients" // coefficients of a solve in the binary format of mat.Dense

	// jobVersion is the current version. Version 4 described the preconditioner by several fields, version 3 had the
	// coefficients in .npy format, version 2 had a file for each array, and version 1 used other names for options and
	// arrays.
	jobVersion = 5
)

// job is the content of a job file: the stage for the ranks to run, and its input.
type job struct {
	Version int             `json:"version"`
	Stage   stage.Name      `json:"stage"`
	Config  config          `json:"config"`
	Data    data            `json:"data"`
	Options json.RawMessage `json:"options"` // options of the stage, for krrlab.Lab.RunNamed
}

// config is the JSON form of a krrlab.Config, with the kernel and the preconditioner as text. Options that are not set
// get their defaults on the ranks.
type config struct {
	Spec   kernel.Spec `json:"kernel"`
	Recipe string      `json:"precond,omitempty"` // text for stage.ParsePreconditioner; "" for the default
	krrlab.Config
}

// newConfig returns the JSON form of c, with an absolute path for the folder of checkpoints. It returns an error if a
// part of c cannot be serialized.
func newConfig(c *krrlab.Config) (cfg config, err error) {
	cfg.Config = *c
	if cfg.Spec, err = kernel.ToSpec(c.Kernel); err != nil {
		return cfg, fmt.Errorf("%w; without a Backend it can be used", err)
	}
	if c.Precond != nil {
		if cfg.Recipe, err = stage.PreconditionerText(c.Precond, c.Kernel); err != nil {
			return cfg, fmt.Errorf("%w and cannot be sent to ranks: use a registered one, or no Backend", err)
		}
	}
	if c.StopRows != nil {
		return cfg,
			fmt.Errorf("krrlab: StopRows cannot be sent to ranks: leave them out, so that the training points " +
				"count, or use no Backend")
	}
	if checkpoint := c.Checkpoint; checkpoint != nil {
		cfg.Checkpoint = new(*checkpoint)
		if cfg.Checkpoint.Dir, err = filepath.Abs(checkpoint.Dir); err != nil { // the ranks run elsewhere
			return cfg, fmt.Errorf("krrlab: folder of checkpoints: %w", err)
		}
	}
	return cfg, nil
}

// config converts cfg back to a krrlab.Config.
func (cfg *config) config() (c krrlab.Config, err error) {
	c = cfg.Config
	if c.Kernel, err = kernel.FromSpec(cfg.Spec); err == nil && cfg.Recipe != "" {
		c.Precond, err = stage.ParsePreconditioner(cfg.Recipe)
	}
	return c, err
}

// writeJob writes the job of a stage, and its data, below dir.root. It sets dir.name to the name of the job folder,
// which consists of the stage and a hash of the job.
func (b *Backend) writeJob(dir *jobDir, lab *krrlab.Lab, stageName stage.Name, options any) error {
	j := &job{Version: jobVersion, Stage: stageName}
	cfg := lab.Config()
	var err error
	if j.Config, err = newConfig(&cfg); err != nil {
		return err
	}
	if j.Options, err = json.Marshal(options); err != nil {
		return fmt.Errorf("krrlab: job: options of %s: %w", stageName, err)
	}
	if err := os.MkdirAll(dir.root, 0o755); err != nil {
		return fmt.Errorf("krrlab: job: %w", err)
	}
	if j.Data, err = writeData(dir.root, lab.Train()); err != nil {
		return err
	}
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return fmt.Errorf("krrlab: job: %w", err)
	}
	hash := sha256.Sum256(text)
	dir.name = string(stageName) + "-" + hex.EncodeToString(hash[:6]) // equal jobs share a folder
	if err := os.MkdirAll(dir.path(""), 0o755); err != nil {
		return fmt.Errorf("krrlab: job: %w", err)
	}
	return atomicfile.WriteFile(dir.path(jobFile), append(text, '\n'))
}

// readJob reads a job file. It returns an error if the file has another version.
func readJob(name string) (*job, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	j := &job{}
	if err = json.Unmarshal(text, j); err == nil && j.Version != jobVersion {
		err = fmt.Errorf("format version %d, want %d: the ranks run another version of krrlab than the one that "+
			"wrote it", j.Version, jobVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", name, err)
	}
	return j, nil
}

// outcome is the content of a result file, which the ranks write into the folder of the job.
type outcome struct {
	Version int        `json:"version"`
	Stage   stage.Name `json:"stage"`
	// value of the stage, without the coefficients of a solve
	Value       json.RawMessage `json:"value"`
	Interrupted bool            `json:"interrupted,omitempty"` // the stage ended early, and Value is partial
}

// readOutcome reads the result file of a job. It returns an error if there is none, if it cannot be read, or if it has
// another version.
func readOutcome(dir *jobDir) (*outcome, error) {
	text, err := os.ReadFile(dir.result())
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the ranks ended without a result: %w", err)
	} else if err != nil {
		return nil, fmt.Errorf("krrlab: result of the ranks: %w", err)
	}
	out := &outcome{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("krrlab: %s: %w", dir.result(), err)
	}
	if out.Version != jobVersion {
		return nil, fmt.Errorf("%s is of format version %d, want %d: the ranks run another version of krrlab",
			dir.result(), out.Version, jobVersion)
	}
	return out, nil
}

// Options configures RunJob.
type Options struct {
	Comm    comm.Comm                // group of ranks, all of which call RunJob; nil for one process
	Memory  int64                    // memory budget of a rank in bytes if the job sets none; 0 for no limit
	Monitor func(krrlab.Event) error // receives progress as Config.Monitor does; may be nil
	Note    func(string)             // receives notes as Checkpoint.Note does; may be nil
}

// RunJob runs the job in a file, on ranks or in one process, and writes the result to the folder of the file. The
// command krrlab job calls it; it is the counterpart of a Backend on the ranks. If the stage returns an error and a
// partial value, for example because ctx ended, RunJob writes that value and returns the error.
func RunJob(ctx context.Context, file string, o Options) error {
	c := comm.OrAlone(o.Comm)
	agree := func(err error) error { return comm.Agree(ctx, c, err) }
	j, lab, err := openJob(file, o)
	if err := agree(err); err != nil {
		return err
	}
	dir := filepath.Dir(file)
	value, err := lab.RunNamed(ctx, j.Stage, j.Options)
	if value == nil {
		return err
	}
	out := &outcome{Version: jobVersion, Stage: j.Stage, Interrupted: err != nil}
	var writeErr error
	if c.Rank() == 0 {
		writeErr = out.write(dir, value)
	}
	if err == nil {
		return agree(writeErr)
	}
	// The ranks do not agree on writeErr, because ctx has usually ended, and then collectives fail.
	return errors.Join(err, writeErr)
}

// write writes the coefficients of a solution and the result file to the folder of the job. After a solve that has
// converged it then removes the checkpoints.
func (out *outcome) write(dir string, value krrlab.Stage) (err error) {
	solution, _ := value.(*krrlab.Solution)
	if solution != nil {
		coefficients, err := solution.Model.C.MarshalBinary()
		if err == nil {
			err = atomicfile.WriteFile(filepath.Join(dir, answerFile), coefficients)
		}
		if err != nil {
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
	err = atomicfile.WriteFile(filepath.Join(dir, resultFile), append(text, '\n'))
	if err == nil && solution != nil && solution.CriterionMet() {
		err = solution.RemoveCheckpoints()
	}
	return err
}

// decode sets the result of a stage, to which value points, from the outcome of a job in folder dir. For a solution, it
// also reads the coefficients.
func (out *outcome) decode(value any, dir string) error {
	if err := json.Unmarshal(out.Value, value); err != nil {
		return err
	}
	solution, ok := value.(*krrlab.Solution)
	if !ok {
		return nil
	}
	solution.Model = &model.Model{C: &mat.Dense{}}
	coefficients, err := os.ReadFile(filepath.Join(dir, answerFile))
	if err != nil {
		return err
	}
	if err = solution.Model.C.UnmarshalBinary(coefficients); err != nil {
		return fmt.Errorf("%s: %w", answerFile, err)
	}
	return nil
}

// openJob reads a job file and its data, and creates the Lab to run it with.
func openJob(file string, o Options) (*job, *krrlab.Lab, error) {
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
	train, err := j.Data.read(filepath.Dir(filepath.Dir(file)))
	if err != nil {
		return nil, nil, err
	}
	lab, err := krrlab.New(train, cfg)
	return j, lab, err
}
