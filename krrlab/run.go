package krrlab

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/verify"
)

// runners run the stages that have a name, with options as JSON.
var runners = map[stage.Name]func(ctx context.Context, l *Lab, options []byte) (Stage, error){
	stage.Solve:       func(ctx context.Context, l *Lab, _ []byte) (Stage, error) { return some(l.Solve(ctx)) },
	stage.StatDim:     runner((*Lab).StatDim),
	stage.SketchSize:  runner((*Lab).SketchSize),
	stage.MultiLevel:  runner((*Lab).MultiLevel),
	stage.LambdaP:     runner((*Lab).LambdaP),
	stage.Quality:     runner((*Lab).Quality),
	stage.Plan:        runner((*Lab).Plan),
	stage.Race:        runner((*Lab).Race),
	stage.Tune:        runner((*Lab).Tune),
	stage.LeaveOneOut: runner((*Lab).LeaveOneOut),
}

// runner makes a runner of a stage's method.
func runner[O any, S interface {
	*V
	Stage
}, V any](method func(*Lab, context.Context, O) (S, error)) func(context.Context, *Lab, []byte) (Stage, error) {
	return func(ctx context.Context, l *Lab, options []byte) (Stage, error) {
		var o O
		if err := json.Unmarshal(options, &o); err != nil {
			return nil, fmt.Errorf("options: %w", err)
		}
		return some(method(l, ctx, o))
	}
}

// some returns no Stage for a nil pointer.
func some[S interface {
	*V
	Stage
}, V any](v S, err error) (Stage, error) {
	if v == nil {
		return nil, err
	}
	return v, err
}

// HasStage reports whether Run knows a stage of that name.
func HasStage(name stage.Name) bool { return runners[name] != nil }

// Run runs the stage of that name with the options of its method as JSON. It may return part of the value beside an error.
func (l *Lab) Run(ctx context.Context, name stage.Name, options []byte) (Stage, error) {
	run := runners[name]
	if run == nil {
		return nil, fmt.Errorf("krrlab: unknown stage %q", name)
	}
	return run(ctx, l, options)
}

// VerifyOptions are the options of Verify, Verification is what it returns.
type (
	VerifyOptions = verify.Options
	Verification  = verify.Verification
)

// Verify is verify.Model: what can be proved of a model, recomputed by code of its own.
func Verify(ctx context.Context, m *model.Model, o VerifyOptions) (*Verification, error) {
	return verify.Model(ctx, m, o)
}
