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

// Files of a job, in its own folder.
const (
	jobFile    = "job.json"
	resultFile = "result.json"
	answerFile = "coefficients" // of a solve, as a mat.Dense writes them
	jobVersion = 5              // 4: a preconditioner in fields; 3: coefficients as .npy; 2: with arrays in a file each; 1: of options and arrays by other names
)

// job is what ranks are asked to do.
type job struct {
	Version int             `json:"version"`
	Stage   stage.Name      `json:"stage"`
	Config  config          `json:"config"`
	Data    data            `json:"data"`
	Options json.RawMessage `json:"options"`
}

// config is a krrlab.Config as JSON; what is not set has its default at the ranks.
type config struct {
	Spec   kernel.Spec `json:"kernel"`
	Recipe string      `json:"precond,omitempty"` // of stage.ParsePreconditioner; "": the default
	krrlab.Config
}

// newConfig returns the configuration as it was given, the folder of checkpoints by its full
// name, or says what of it cannot be serialized.
func newConfig(c *krrlab.Config) (j config, err error) {
	j.Config = *c
	if j.Spec, err = kernel.ToSpec(c.Kernel); err != nil {
		return j, fmt.Errorf("%w; without a Backend it runs as it is", err)
	}
	if c.Precond != nil {
		if j.Recipe, err = stage.PreconditionerText(c.Precond, c.Kernel); err != nil {
			return j, fmt.Errorf("%w and cannot be sent to ranks: take one that has a name, or no Backend", err)
		}
	}
	if c.StopRows != nil {
		return j, fmt.Errorf("krrlab: StopRows are not sent to ranks: leave them out, for the training points, or " +
			"take no Backend")
	}
	if k := c.Checkpoint; k != nil {
		j.Checkpoint = new(*k)
		if j.Checkpoint.Dir, err = filepath.Abs(k.Dir); err != nil { // the ranks run elsewhere
			return j, fmt.Errorf("krrlab: folder of checkpoints: %w", err)
		}
	}
	return j, nil
}

// config is the inverse of newConfig.
func (j *config) config() (c krrlab.Config, err error) {
	c = j.Config
	if c.Kernel, err = kernel.FromSpec(j.Spec); err == nil && j.Recipe != "" {
		c.Precond, err = stage.ParsePreconditioner(j.Recipe)
	}
	return c, err
}

// writeJob writes the job of a stage and what it needs, in a folder whose name is a function
// of its content, and sets that.
func (b *Backend) writeJob(dir *jobDir, l *krrlab.Lab, stage stage.Name, options any) error {
	j := &job{Version: jobVersion, Stage: stage}
	cfg := l.Config()
	var err error
	if j.Config, err = newConfig(&cfg); err != nil {
		return err
	}
	if j.Options, err = json.Marshal(options); err != nil {
		return fmt.Errorf("krrlab: job: options of %s: %w", stage, err)
	}
	if err := os.MkdirAll(dir.root, 0o755); err != nil {
		return fmt.Errorf("krrlab: job: %w", err)
	}
	if j.Data, err = writeData(dir.root, l.Train()); err != nil {
		return err
	}
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return fmt.Errorf("krrlab: job: %w", err)
	}
	sum := sha256.Sum256(text)
	dir.name = string(stage) + "-" + hex.EncodeToString(sum[:6])
	if err := os.MkdirAll(dir.path(""), 0o755); err != nil {
		return fmt.Errorf("krrlab: job: %w", err)
	}
	return atomicfile.Put(dir.path(jobFile), append(text, '\n'))
}

func readJob(name string) (*job, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	j := &job{}
	if err = json.Unmarshal(b, j); err == nil && j.Version != jobVersion {
		err = fmt.Errorf("format version %d, want %d: the ranks run another version of krrlab than the one that wrote it",
			j.Version, jobVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", name, err)
	}
	return j, nil
}

// outcome is what a job has come to, in its folder.
type outcome struct {
	Version     int             `json:"version"`
	Stage       stage.Name      `json:"stage"`
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
		return nil, fmt.Errorf("%s is of format version %d, want %d: the ranks run another version of krrlab",
			dir.result(), out.Version, jobVersion)
	}
	return out, nil
}

// Options of RunJob.
type Options struct {
	Comm    comm.Comm                // the ranks, which call RunJob together; nil for one process
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
		c, err := sol.Model.C.MarshalBinary()
		if err == nil {
			err = atomicfile.Put(filepath.Join(dir, answerFile), c)
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
	err = atomicfile.Put(filepath.Join(dir, resultFile), append(text, '\n'))
	if err == nil && sol != nil && sol.Reached() {
		err = sol.RemoveCheckpoints()
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
	sol.Model = &model.Model{C: &mat.Dense{}}
	c, err := os.ReadFile(filepath.Join(dir, answerFile))
	if err != nil {
		return err
	}
	if err = sol.Model.C.UnmarshalBinary(c); err != nil {
		return fmt.Errorf("%s: %w", answerFile, err)
	}
	return nil
}

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
