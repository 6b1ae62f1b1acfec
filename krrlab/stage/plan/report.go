package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Report is a choice, and what it is predicted to take, for the report of a solve.
type Report struct {
	Choice  cost.Candidate `json:"choice"`
	Seconds cost.Seconds   `json:"predicted_seconds"`
	Bytes   int64          `json:"predicted_bytes"` // of the process, at their most
	Flags   string         `json:"flags"`           // of krrlab fit that ask for the choice by name
	Raced   []Raced        `json:"raced,omitempty"` // what was tried beside
	// Instead is the direct solver that a solve which goes wrong goes over to (Late), nil where it does not; Over
	// says that it did, and why.
	Fallback *cost.Candidate `json:"instead,omitempty"`
	Switched string          `json:"over,omitempty"`
}

// WithChoice returns the report of a plan that goes over to a candidate.
func (r Report) WithChoice(c *cost.Candidate) Report {
	r.Choice, r.Seconds, r.Flags, r.Fallback = *c, c.Seconds, c.Flags(), nil
	return r
}

// Raced is a preconditioner of a race.
type Raced struct {
	Name       string       `json:"precond"`
	Seconds    float64      `json:"seconds"` // of making M
	Iterations int          `json:"iterations"`
	Residual   stage.Number `json:"residual"` // after them
	Remaining  stage.Number `json:"left"`     // seconds to τ by its slope
	Why        string       `json:"why,omitempty"`
}

func (r *Raced) String() string {
	if r.Why != "" {
		return fmt.Sprintf("%s: %s", r.Name, r.Why)
	}
	return fmt.Sprintf("%s: made in %.2g s, %d iterations to a residual of %.1e, by whose slope %.2g s are left",
		r.Name, r.Seconds, r.Iterations, r.Residual, r.Remaining)
}

// What a solve does before it goes over to the direct solver, in parts of the seconds of that.
const (
	fewSpent = 0.25 // before the slope is believed that says more is left than the direct solver takes
	fewLeft  = 0.125
	// overTimes is how many times as long as iterations that came to nothing it may take.
	overTimes = 10
)

// Late reports whether the direct solver would finish sooner than the iterations: done are done, and left remain by
// the slope of their residuals, at least low. It would where those take longer than the direct solver, and a quarter
// of its seconds is spent, K and M included; or where its seconds are spent, and more than an eighth of them is left or
// was spent since. So at most some twice what the direct solver alone would take is spent. By the seconds predicted: no
// clock enters.
func (r *Report) Late(done int, low, left float64) bool {
	if r == nil || r.Fallback == nil {
		return false
	}
	direct, each := r.Fallback.Seconds.Training(), r.Choice.IterationSeconds()
	spent := (r.Seconds.Training() - r.Seconds.Solve - r.Seconds.Residual + float64(done)*each) / direct
	return spent >= fewSpent && low*each >= direct || spent >= 1 && left*each > fewLeft*direct || spent >= 1+fewLeft
}

// DirectPays reports whether the direct solver is worth its seconds after done iterations that did not reach τ: they are
// at most ten times those of the iterations.
func (r *Report) DirectPays(done int) bool {
	return r != nil && r.Fallback != nil &&
		r.Fallback.Seconds.Training() <= overTimes*float64(done)*r.Choice.IterationSeconds()
}

// ReportFile is where a folder of checkpoints keeps what was chosen.
const ReportFile = "plan.json"

// Save writes a report into a folder of checkpoints.
func (r *Report) Save(dir string) error {
	return stage.WriteJSON(filepath.Join(dir, ReportFile), r)
}

// ReadReport returns the report in a folder of checkpoints, nil where there is none.
func ReadReport(dir string) (*Report, error) {
	text, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("krrlab: checkpoint: %w", err)
	}
	r := new(Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("krrlab: the checkpoint in %s has a damaged %s: %w: name its solver and preconditioner",
			dir, ReportFile, err)
	}
	return r, nil
}
