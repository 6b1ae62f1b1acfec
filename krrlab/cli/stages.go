package cli

import (
	"context"
	"reflect"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/stage"
)

// definedCommand makes the command of a stage from its definition.
func (a *app) definedCommand(d *stage.Definition) *cobra.Command {
	options := reflect.New(reflect.TypeOf(d.Options)) // a pointer to them
	c := stageCommand{
		use: string(d.Name) + " (--data NAME | --train FILE)", short: d.Short, long: d.Long, example: d.Example,
		options: options.Interface(), flags: d.Flags, tol: 1e-3, tables: d.Tables,
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
			return l.Run(ctx, options.Elem().Interface().(stage.Runner))
		},
	}
	if h, ok := options.Interface().(stage.Hinter); ok {
		c.hint = func() string { return h.Hint() }
	}
	return a.stageCommand(c)
}
