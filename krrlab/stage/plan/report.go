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

// Report is the part of a plan that appears in the report of a solve: the choice and its predicted costs.
type Report struct {
	Choice  cost.Candidate `json:"choice"`
	Seconds cost.Seconds   `json:"predicted_seconds"`
	Bytes   int64          `json:"predicted_bytes"` // predicted peak memory of the process; at least that of planning
	Flags   string         `json:"flags"`           // flags of krrlab fit that request the choice by name
	Race    []RaceEntry    `json:"raced,omitempty"` // preconditioners that were raced against the choice
	// NoSeries is the reason why there is no Fourier series for points in one to three dimensions; "" if there is one,
	// or if none was considered.
	NoSeries string `json:"no_series,omitempty"`
	// Fallback is the direct solver that replaces an iteration that is late (IsLate) or does not converge, or the
	// method that replaces a Fourier series; nil if there is no such replacement.
	Fallback *cost.Candidate `json:"instead,omitempty"`
	// Switched describes why the solve switched to Fallback; "" if it did not.
	Switched string `json:"over,omitempty"`
}

// WithChoice returns the report with another candidate as the choice and without a fallback.
func (r Report) WithChoice(c *cost.Candidate) Report {
	r.Choice, r.Seconds, r.Flags, r.Fallback = *c, c.Seconds, c.Flags(), nil
	return r
}

// RaceEntry is the result of one preconditioner in a race: several preconditioners run a few iterations each, and the
// one with the fewest predicted remaining seconds is used.
type RaceEntry struct {
	Name       string       `json:"precond"`
	Seconds    float64      `json:"seconds"` // time for building M
	Iterations int          `json:"iterations"`
	Residual   stage.Number `json:"residual"`      // relative residual after these iterations
	Remaining  stage.Number `json:"left"`          // seconds to reach τ, extrapolated from the decrease of the residuals
	Reason     string       `json:"why,omitempty"` // reason why it failed; "" if it did not
}

func (r *RaceEntry) String() string {
	if r.Reason != "" {
		return fmt.Sprintf("%s: %s", r.Name, r.Reason)
	}
	return fmt.Sprintf("%s: made in %.2g s, %d iterations to a residual of %.1e, by whose slope %.2g s are left",
		r.Name, r.Seconds, r.Iterations, r.Residual, r.Remaining)
}

// Limits for switching from an iteration to the direct solver, chosen by judgment. Shares are relative to the
// predicted seconds of the direct solver. A larger value switches later or less often, except for maxDirectRatio.
const (
	// minElapsedShare is the share that must be spent before extrapolated residuals may cause a switch.
	minElapsedShare = 0.25
	// maxOverrunShare is the share that an iteration may still need, or spend in addition, once it has spent the
	// seconds of the direct solver.
	maxOverrunShare = 0.125
	// maxDirectRatio bounds the seconds of the direct solver, relative to those of an iteration that did not converge.
	maxDirectRatio = 10
)

// IsLate reports whether the direct solver should replace an iteration that has done the given number of iterations.
// remaining is the number of iterations still needed according to the slope of the residuals, and minRemaining is a
// lower bound of this number. IsLate returns false for a nil Report, and without a Fallback.
//
// Let D be the predicted seconds of the direct solver, and let the seconds spent include those for K and M. The result
// is true in three cases:
//
//   - at least D/4 is spent, and minRemaining iterations take at least D;
//   - at least D is spent, and the remaining iterations take more than D/8;
//   - at least 9D/8 is spent.
//
// A solve that switches therefore takes at most about 2.1 times as long as the direct solver alone. All seconds are
// predicted ones, so the result does not depend on a clock.
func (r *Report) IsLate(iterations int, minRemaining, remaining float64) bool {
	if r == nil || r.Fallback == nil {
		return false
	}
	directSeconds, iterationSeconds := r.Fallback.Seconds.Training(), r.Choice.IterationSeconds()
	setUpSeconds := r.Seconds.Training() - r.Seconds.Solve - r.Seconds.Residual
	spentShare := (setUpSeconds + float64(iterations)*iterationSeconds) / directSeconds
	return spentShare >= minElapsedShare && minRemaining*iterationSeconds >= directSeconds ||
		spentShare >= 1 && remaining*iterationSeconds > maxOverrunShare*directSeconds ||
		spentShare >= 1+maxOverrunShare
}

// PrefersSeriesFallback reports whether the Fallback, which must not be nil, should run after a Fourier series that
// missed τ. It should if it is predicted to take at most maxDirectRatio times as long as the series.
func (r *Report) PrefersSeriesFallback() bool {
	return r.Fallback.Seconds.Training() <= maxDirectRatio*r.Seconds.Training()
}

// PrefersDirect reports whether the direct solver should run after an iteration that ended without reaching τ. It
// should if it is predicted to take at most maxDirectRatio times as long as the given number of iterations.
func (r *Report) PrefersDirect(iterations int) bool {
	return r != nil && r.Fallback != nil &&
		r.Fallback.Seconds.Training() <= maxDirectRatio*float64(iterations)*r.Choice.IterationSeconds()
}

// ReportFile is the name of the file, in a folder of checkpoints, that stores the report of the plan.
const ReportFile = "plan.json"

// Save writes the report into a folder of checkpoints.
func (r *Report) Save(dir string) error {
	return stage.WriteJSON(filepath.Join(dir, ReportFile), r)
}

// ReadReport returns the report that is stored in a folder of checkpoints, or nil if there is none.
func ReadReport(dir string) (*Report, error) {
	text, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("krrlab: checkpoint: %w", err)
	}
	report := new(Report)
	if err := json.Unmarshal(text, report); err != nil {
		return nil, fmt.Errorf("krrlab: the checkpoint in %s has a damaged %s: %w: name its solver and preconditioner",
			dir, ReportFile, err)
	}
	return report, nil
}
