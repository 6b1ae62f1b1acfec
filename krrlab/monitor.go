package krrlab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/pcg"
)

// StageName names a stage, or a part of its work.
type StageName string

// The stages that Lab.Run runs.
const (
	StageSolve      StageName = "solve"
	StageStatDim    StageName = "statdim"
	StageSketchSize StageName = "sketch-size"
	StageMultiLevel StageName = "multilevel"
	StageLambdaP    StageName = "lambda-p"
	StageQuality    StageName = "quality"
)

// Parts of their work, in Events.
const (
	StageLoad        StageName = "load"     // of the data
	StageJob         StageName = "job"      // until the ranks of a Backend run
	StageFeatures    StageName = "features" // Z
	StageFactor      StageName = "factor"   // M
	StageKernel      StageName = "kernel"   // K
	StageLanczos     StageName = "lanczos"
	StageProbes      StageName = "probes"
	StageEigenvalues StageName = "eigenvalues"
	StageSpectrum    StageName = "spectrum"
	StageResidual    StageName = "residual"
	StagePredict     StageName = "predict"
)

func (s StageName) String() string { return string(s) }

// Event reports the progress of a stage.
type Event struct {
	Stage       StageName     // or the part of it that is at work
	Detail      string        // more of it, for a person; "" for nothing
	Done, Total int           // parts of the work; Total 0 means unknown
	Iteration   int           // of the solve
	Residual    float64       // of the solve: worst ‖y_j−Ac_j‖₂/‖y_j‖₂, by recurrence
	Remaining   time.Duration // estimate; negative means unknown
}

// String says it in one line.
func (e Event) String() string {
	s := e.Stage.String()
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	switch {
	case e.Iteration > 0:
		s += fmt.Sprintf(": iteration %d, residual %.2e", e.Iteration, e.Residual)
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

// watched runs work, which an error of a Monitor ends: see Config.Monitor.
func watched[T any](ctx context.Context, work func(context.Context) (*T, error)) (*T, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	v, err := work(context.WithValue(ctx, stopKey{}, stop))
	if by, ok := context.Cause(ctx).(stopped); ok {
		err = by.error
	}
	if v != nil && errors.Is(err, pcg.ErrStop) {
		err = nil
	}
	return v, err
}

// tell calls a Monitor, and ends the stage that ctx is of where it returns an error.
func tell(ctx context.Context, monitor func(Event) error, e Event) {
	if err := monitor(e); err != nil {
		if stop, ok := ctx.Value(stopKey{}).(context.CancelCauseFunc); ok {
			stop(stopped{err})
		}
	}
}
