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
	stage.Solve: func(ctx context.Context, l *Lab, _ []byte) (Stage, error) { return some(l.Solve(ctx)) },
	stage.Tune:  runner((*Lab).Tune),
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

// HasStage reports whether RunNamed knows a stage of that name.
func HasStage(name stage.Name) bool { return runners[name] != nil || defined(name) != nil }

// RunNamed runs the built-in stage of that name with its options as JSON, as a rank does.
func (l *Lab) RunNamed(ctx context.Context, name stage.Name, options []byte) (Stage, error) {
	if run := runners[name]; run != nil {
		return run(ctx, l, options)
	}
	d := defined(name)
	if d == nil {
		return nil, fmt.Errorf("krrlab: unknown stage %q", name)
	}
	o, err := d.Decode(options)
	if err != nil {
		return nil, err
	}
	return l.Run(ctx, o)
}

// VerifyOptions are the options of Verify, Verification is what it returns.
type (
	VerifyOptions = verify.Options
	Verification  = verify.Verification
)

// Verify is verify.Model: what can be proved of a model, recomputed by independent code.
func Verify(ctx context.Context, m *model.Model, o VerifyOptions) (*Verification, error) {
	return verify.Model(ctx, m, o)
}
