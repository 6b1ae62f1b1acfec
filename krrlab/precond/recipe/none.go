package recipe

import (
	"context"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// None is M = I: no preconditioner.
type None struct{}

// String returns the name of the preconditioner on command lines.
func (None) String() string { return "none" }

// Make returns nil, which stands for M = I.
func (None) Make(context.Context, stage.Bench) (pcg.Preconditioner, error) { return nil, nil }

func init() { stage.RegisterBuiltIn(stage.Kind{Name: "none", Zero: None{}}) }
