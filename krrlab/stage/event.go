package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Name names a stage, or a part of its work.
type Name string

// The stages that krrlab.Lab.Run runs.
const (
	Solve   Name = "solve"
	Plan    Name = "plan"
	Compare Name = "compare"
	Tune    Name = "tune"
)

// Parts of their work, in Events.
const (
	Load        Name = "load"     // of the data
	Job         Name = "job"      // until the ranks of a Backend run
	Features    Name = "features" // Z
	Factor      Name = "factor"   // M
	Kernel      Name = "kernel"   // K
	Lanczos     Name = "lanczos"
	Probes      Name = "probes"
	Eigenvalues Name = "eigenvalues"
	Spectrum    Name = "spectrum"
	Residual    Name = "residual"
	Predict     Name = "predict"
)

func (s Name) String() string { return string(s) }

// Event reports the progress of a stage.
type Event struct {
	Stage       Name    // or the part of it that is at work
	Detail      string  // more of it, for a person; "" for nothing
	Done, Total int     // parts of the work; Total 0 means unknown
	Iteration   int     // of the solve
	Residual    float64 // of the solve: worst ‖y_j−Ac_j‖₂/‖y_j‖₂, by recurrence
	// of the solve: worst ‖c_j−c_j*‖_A/‖c_j*‖_A is at most that, but for the error of K as stored
	Bound float64
	// of tune: the leave-one-out error of the best so far, on the rows that Detail names; 0 for none
	Loss      float64
	Remaining time.Duration // estimate; negative means unknown
}

func (e Event) String() string {
	s := e.Stage.String()
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	switch {
	case e.Iteration > 0:
		s += fmt.Sprintf(": iteration %d, residual %.2e", e.Iteration, e.Residual)
		if e.Bound > 0 {
			s += fmt.Sprintf(", error ≤ %.1e", e.Bound)
		}
	case e.Total > 0:
		s += fmt.Sprintf(": %.0f %%", 100*float64(e.Done)/float64(e.Total))
	}
	if e.Remaining > 0 {
		s += fmt.Sprintf(", about %v left", e.Remaining.Round(time.Second))
	}
	return s
}

// stopKey finds the function that ends the stage a context is of, stopped is what it is ended with.
type (
	stopKey struct{}
	stopped struct{ error }
)

// Watch returns the context of a stage that an error of its monitor (Tell) ends, and what says how it ended: given
// whether there is a value, and the stage's own error, it returns the monitor's error if that ended it,
// nil for pcg.ErrStop where there is a value.
func Watch(ctx context.Context) (_ context.Context, ended func(value bool, err error) error) {
	ctx, stop := context.WithCancelCause(ctx)
	return context.WithValue(ctx, stopKey{}, stop), func(value bool, err error) error {
		if by, ok := context.Cause(ctx).(stopped); ok {
			err = by.error
		}
		stop(nil)
		if value && errors.Is(err, pcg.ErrStop) {
			err = nil
		}
		return err
	}
}

// Stopped reports whether a monitor has ended the stage that ctx is of.
func Stopped(ctx context.Context) bool {
	_, ok := context.Cause(ctx).(stopped)
	return ok
}

// Tell calls a monitor, and ends the stage that ctx is of where it returns an error.
func Tell(ctx context.Context, monitor func(Event) error, e Event) {
	if err := monitor(e); err != nil {
		if stop, ok := ctx.Value(stopKey{}).(context.CancelCauseFunc); ok {
			stop(stopped{err})
		}
	}
}

// Timed adds the seconds that f takes to *seconds.
func Timed(seconds *float64, f func() error) error {
	t := time.Now()
	err := f()
	*seconds += time.Since(t).Seconds()
	return err
}

// Lap returns the seconds since *clock, and sets it to now.
func Lap(clock *time.Time) float64 {
	last := *clock
	*clock = time.Now()
	return clock.Sub(last).Seconds()
}

// AgreeToStop returns an error if err is one on any of the ranks, pcg.ErrStop unless another is too. A failure to
// agree is left to what they do together next.
func AgreeToStop(ctx context.Context, ranks comm.Comm, err error) error {
	if ranks.Size() == 1 {
		return err
	}
	const fails, stops, goesOn = 1, 2, 3
	state := int64(goesOn)
	switch {
	case errors.Is(err, pcg.ErrStop):
		state = stops
	case err != nil:
		state = fails
	}
	switch least, e := comm.Least(ctx, ranks, state); {
	case e != nil || least == goesOn:
		return nil
	case least == stops:
		return pcg.ErrStop
	case state != fails:
		err = nil
	}
	return comm.Agree(ctx, ranks, err)
}
