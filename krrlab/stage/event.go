package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Name is the name of a stage, or of a part of its work.
type Name string

// Names of stages that krrlab.Lab.Run runs.
const (
	Solve   Name = "solve"
	Plan    Name = "plan"
	Compare Name = "compare"
	Tune    Name = "tune"
)

// Names of parts of the work of a stage, in Events.
const (
	Load        Name = "load"        // reading the data
	Job         Name = "job"         // waiting for the start of the ranks of a cluster
	Features    Name = "features"    // forming Z
	Factor      Name = "factor"      // forming M
	Kernel      Name = "kernel"      // forming K
	Lanczos     Name = "lanczos"     // steps of the Lanczos process
	Probes      Name = "probes"      // solves with random right-hand sides
	Eigenvalues Name = "eigenvalues" // eigendecomposition of ZᵀZ or of a small K
	Spectrum    Name = "spectrum"    // all eigenvalues of K
	Residual    Name = "residual"    // true residuals
	Predict     Name = "predict"     // predictions of test rows
)

func (s Name) String() string { return string(s) }

// Event reports the progress of a stage.
type Event struct {
	Stage       Name    // stage, or the part of it that is running
	Detail      string  // further text for the user; may be ""
	Done, Total int     // completed and total parts of the work; Total 0 means unknown
	Iteration   int     // iteration of the solve
	Residual    float64 // recursive residual ‖y_j−Ac_j‖₂/‖y_j‖₂ of the worst column of the solve
	// Bound is an upper bound of ‖c_j−c_j*‖_A/‖c_j*‖_A for the worst column of the solve, apart from the storage error.
	Bound float64
	// Loss is the smallest leave-one-out error that tune has found, on the rows that Detail describes; 0: none.
	Loss      float64
	Remaining time.Duration // estimated time left; negative: unknown
}

// String returns the event as a line of text.
func (e Event) String() string {
	text := e.Stage.String()
	if e.Detail != "" {
		text += " (" + e.Detail + ")"
	}
	switch {
	case e.Iteration > 0:
		text += fmt.Sprintf(": iteration %d, residual %.2e", e.Iteration, e.Residual)
		if e.Bound > 0 {
			text += fmt.Sprintf(", error ≤ %.1e", e.Bound)
		}
	case e.Total > 0:
		text += fmt.Sprintf(": %.0f %%", 100*float64(e.Done)/float64(e.Total))
	}
	if e.Remaining > 0 {
		text += fmt.Sprintf(", about %v left", e.Remaining.Round(time.Second))
	}
	return text
}

// stopKey is the key of the function that ends a stage, in the context of the stage.
type stopKey struct{}

// monitorError wraps the error of the monitor that ended a stage. The context of the stage has it as its cause.
type monitorError struct{ error }

// Watch returns a context for a stage that ends if the monitor of the stage returns an error (Notify), and a function
// finish. The stage passes its own error to finish, and whether it has a result. finish returns the error of the
// stage: the error of the monitor if the monitor ended the stage, but nil for pcg.ErrStop if there is a result.
func Watch(ctx context.Context) (_ context.Context, finish func(hasValue bool, err error) error) {
	ctx, stop := context.WithCancelCause(ctx)
	return context.WithValue(ctx, stopKey{}, stop), func(hasValue bool, err error) error {
		if cause, ok := context.Cause(ctx).(monitorError); ok {
			err = cause.error
		}
		stop(nil)
		if hasValue && errors.Is(err, pcg.ErrStop) {
			err = nil
		}
		return err
	}
}

// StoppedByMonitor reports whether the monitor ended the stage whose context is ctx.
func StoppedByMonitor(ctx context.Context) bool {
	_, ok := context.Cause(ctx).(monitorError)
	return ok
}

// Notify calls a monitor. If the monitor returns an error, Notify ends the stage whose context is ctx.
func Notify(ctx context.Context, monitor func(Event) error, e Event) {
	if err := monitor(e); err != nil {
		if stop, ok := ctx.Value(stopKey{}).(context.CancelCauseFunc); ok {
			stop(monitorError{err})
		}
	}
}

// Timed calls f, adds the time of the call to *seconds, and returns the error of f.
func Timed(seconds *float64, f func() error) error {
	start := time.Now()
	err := f()
	*seconds += time.Since(start).Seconds()
	return err
}

// Lap returns the seconds since *clock, and sets *clock to the current time.
func Lap(clock *time.Time) float64 {
	previous := *clock
	*clock = time.Now()
	return clock.Sub(previous).Seconds()
}

// AgreeToStop makes all ranks stop together: it returns an error on every rank if err is not nil on any of them. The
// error is pcg.ErrStop unless another error occurred. If the ranks cannot communicate, it returns nil, and their next
// joint operation fails.
func AgreeToStop(ctx context.Context, communicator comm.Comm, err error) error {
	if communicator.Size() == 1 {
		return err
	}
	const fails, stops, goesOn = 1, 2, 3 // possible outcomes, the most severe one first
	outcome := int64(goesOn)
	switch {
	case errors.Is(err, pcg.ErrStop):
		outcome = stops
	case err != nil:
		outcome = fails
	}
	worst, agreeErr := comm.AllReduceMin(ctx, communicator, outcome)
	switch {
	case agreeErr != nil || worst == goesOn:
		return nil
	case worst == stops:
		return pcg.ErrStop
	case outcome != fails:
		err = nil
	}
	return comm.Agree(ctx, communicator, err)
}
