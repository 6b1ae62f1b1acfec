package krrlab

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/precond"
)

// Files of a job, in a folder of its own.
const (
	jobFile    = "job.json"
	resultFile = "result.json"
	jobVersion = 1
)

// job is what ranks are asked to do.
type job struct {
	Version int             `json:"version"`
	Stage   string          `json:"stage"`
	Config  jobConfig       `json:"config"`
	Data    jobData         `json:"data"`
	Options json.RawMessage `json:"options"`
}

// jobConfig is a Config as JSON; what is not set has its default at the ranks.
type jobConfig struct {
	Kernel     kernel.Spec    `json:"kernel"`
	Lambda     float64        `json:"lambda"`
	Solver     string         `json:"solver"`
	Precond    string         `json:"precond"`
	Orthogonal bool           `json:"orthogonal,omitempty"`
	Levels     []ChainLevel   `json:"levels,omitempty"` // of the feature map, if it is a chain
	Features   int            `json:"features,omitempty"`
	LambdaP    float64        `json:"lambda_p,omitempty"`
	Form       string         `json:"form"`
	Repeat     int            `json:"repeat,omitempty"`
	Tol        float64        `json:"tol,omitempty"`
	MaxIter    int            `json:"max_iter,omitempty"`
	Storage    string         `json:"storage"`
	Memory     int64          `json:"memory,omitempty"`
	Seed       uint64         `json:"seed"`
	Exact      string         `json:"residual"`
	Checkpoint *jobCheckpoint `json:"checkpoint,omitempty"`
}

// jobCheckpoint is a Checkpoint as JSON.
type jobCheckpoint struct {
	Dir       string        `json:"dir"`
	Every     time.Duration `json:"every,omitempty"`
	EveryIter int           `json:"every_iterations,omitempty"`
	Resume    bool          `json:"resume,omitempty"`
}

// newJobConfig returns the configuration as it was given, the folder of checkpoints by its full
// name, or says what of it cannot be serialized.
func newJobConfig(c Config) (j jobConfig, err error) {
	if j.Kernel, err = kernel.ToSpec(c.Kernel); err != nil {
		return j, fmt.Errorf("kernel %v is user-defined and cannot be sent to ranks: take a built-in one, or no Backend", c.Kernel)
	}
	if j.Orthogonal, j.Levels, err = mapSpec(c); err != nil {
		return j, err
	}
	j.Lambda, j.Solver, j.Precond, j.Form = c.Lambda, c.Solver.String(), c.Precond.String(), c.Form.String()
	j.Features, j.LambdaP, j.Repeat, j.Tol, j.MaxIter = c.Features, c.LambdaP, c.Repeat, c.Tol, c.MaxIter
	j.Storage, j.Memory, j.Seed, j.Exact = c.Storage.String(), c.Memory, c.Seed, c.Exact.String()
	if k := c.Checkpoint; k != nil {
		j.Checkpoint = &jobCheckpoint{k.Dir, k.Every, k.EveryIter, k.Resume}
		if j.Checkpoint.Dir, err = filepath.Abs(k.Dir); err != nil { // the ranks run elsewhere
			return j, fmt.Errorf("krrlab: folder of checkpoints: %w", err)
		}
	}
	return j, nil
}

// mapSpec says in words which feature map a configuration asks for.
func mapSpec(c Config) (orthogonal bool, levels []ChainLevel, err error) {
	dist, want := c.Map, feature.Dist(nil)
	switch m := c.Map.(type) {
	case nil:
		return c.Orthogonal, nil, nil
	case feature.Chain:
		f, _ := m.Features.(feature.Fourier)
		orthogonal = f.Orthogonal
		levels = []ChainLevel{{"features", m.Width}}
		for _, s := range m.Sketches {
			levels = append(levels, ChainLevel{s.Dist.String(), s.Width})
		}
		want, err = ChainFor(c.Kernel, orthogonal, levels)
	case feature.Fourier:
		orthogonal = m.Orthogonal
		want, err = featuresFor(c.Kernel, orthogonal)
	default:
		want, err = featuresFor(c.Kernel, false)
	}
	if err != nil || !reflect.DeepEqual(dist, want) {
		return false, nil, fmt.Errorf("feature map %v is user-defined and cannot be sent to ranks: take the default of the kernel, or a chain of ChainFor", dist)
	}
	return orthogonal, levels, nil
}

// config is the inverse of newJobConfig.
func (j *jobConfig) config() (c Config, err error) {
	take := func(e error) {
		if err == nil {
			err = e
		}
	}
	var e error
	c.Kernel, e = kernel.FromSpec(j.Kernel)
	take(e)
	c.Solver, e = ParseSolver(j.Solver)
	take(e)
	c.Precond, e = ParsePrecond(j.Precond)
	take(e)
	c.Form, e = precond.ParseForm(j.Form)
	take(e)
	c.Storage, e = gram.ParseStorage(j.Storage)
	take(e)
	c.Exact, e = ParseResidualPolicy(j.Exact)
	take(e)
	if err == nil && j.Levels != nil {
		c.Map, err = ChainFor(c.Kernel, j.Orthogonal, j.Levels)
	}
	c.Lambda, c.Orthogonal, c.Features, c.LambdaP, c.Repeat = j.Lambda, j.Orthogonal, j.Features, j.LambdaP, j.Repeat
	c.Tol, c.MaxIter, c.Memory, c.Seed = j.Tol, j.MaxIter, j.Memory, j.Seed
	if k := j.Checkpoint; k != nil {
		c.Checkpoint = &Checkpoint{Dir: k.Dir, Every: k.Every, EveryIter: k.EveryIter, Resume: k.Resume}
	}
	return c, err
}

// writeJob writes the job of a stage and what it needs, in a folder whose name is a function
// of its content, and names that.
func (l *Lab) writeJob(dir *jobDir, stage string, options any) (*job, error) {
	j := &job{Version: jobVersion, Stage: stage}
	var err error
	if j.Config, err = newJobConfig(l.asked); err != nil {
		return nil, err
	}
	if j.Options, err = json.Marshal(options); err != nil {
		return nil, fmt.Errorf("krrlab: job: options of %s: %w", stage, err)
	}
	if err := os.MkdirAll(dir.root, 0o755); err != nil {
		return nil, fmt.Errorf("krrlab: job: %w", err)
	}
	if j.Data, err = writeJobData(dir.root, l.train, l.cfg.Backend.Named); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("krrlab: job: %w", err)
	}
	sum := sha256.Sum256(text)
	dir.name = stage + "-" + hex.EncodeToString(sum[:6])
	if err := os.MkdirAll(dir.path(""), 0o755); err != nil {
		return nil, fmt.Errorf("krrlab: job: %w", err)
	}
	return j, atomicfile.Write(dir.path(jobFile), func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
}

// readJob reads a job.
func readJob(name string) (*job, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	j, err := parseJob(b)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", name, err)
	}
	return j, nil
}

// parseJob reads the text of a job.
func parseJob(b []byte) (*job, error) {
	j := &job{}
	if err := json.Unmarshal(b, j); err != nil {
		return nil, err
	}
	if j.Version != jobVersion {
		return nil, fmt.Errorf("format version %d, want %d: the ranks run another krrlab than what wrote it", j.Version, jobVersion)
	}
	if jobStages[j.Stage] == nil {
		return nil, fmt.Errorf("unknown stage %q", j.Stage)
	}
	return j, nil
}
