package krrlab

import (
	"context"

	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/verify"
)

// VerifyOptions are the options of Verify, Verification is what it returns.
type (
	VerifyOptions = verify.Options
	Verification  = verify.Verification
)

// Verify is verify.Model: what can be proved of a model, recomputed by code of its own.
func Verify(ctx context.Context, m *model.Model, o VerifyOptions) (*Verification, error) {
	return verify.Model(ctx, m, o)
}
