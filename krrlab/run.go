package krrlab

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/verify"
)

// RunNamed runs the built-in stage of that name with its options as JSON, as a rank does.
func (l *Lab) RunNamed(ctx context.Context, name stage.Name, options []byte) (Stage, error) {
	d := find(func(d *stage.Definition) bool { return d.Name == name })
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
