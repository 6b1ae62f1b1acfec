package cli

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/schema"
	"github.com/krrlab/lab/krrlab/stage"
)

// stageMethod are the flags of the method that stages take some of.
type stageMethod struct {
	krrlab.PrecondSpec
	Tol     float64 `flag:"tol" default:"1e-3" check:"(0,1)" help:"tolerance τ of ‖y−Ac‖/‖y‖ to which iterations are counted"`
	MaxIter int     `flag:"max-iter" default:"1000" check:">=1" help:"maximum number of iterations"`
}

// definedCommand makes the command of a stage from its definition.
func (a *app) definedCommand(d *stage.Definition) *cobra.Command {
	var method stageMethod
	options := reflect.New(reflect.TypeOf(d.Options)) // a pointer to them
	of := schema.Of(&method)
	words := map[string]string{} // by the flags that the stage takes, those that it takes of it; "" for any
	for _, flag := range strings.Fields(d.Flags) {
		name, some, _ := strings.Cut(flag, "=")
		words[name] = some
	}
	of.Fields = slices.DeleteFunc(of.Fields, func(f *schema.Field) bool { _, ok := words[f.Name]; return !ok })
	c := stageCommand{
		use: string(d.Name) + " (--data NAME | --train FILE)", short: d.Short, long: d.Long, example: d.Example,
		options: options.Interface(), add: func(p *pflag.FlagSet) { addFields(p, of.Fields) },
		check: func(*pflag.FlagSet) error {
			if err := of.Settle(); err != nil {
				return errUsage{err}
			}
			if some := words["precond"]; some != "" && method.Name != "" && !slices.Contains(strings.Split(some, ","), method.Name) {
				return usagef("--precond %s: want one of %s", method.Name, strings.ReplaceAll(some, ",", ", "))
			}
			_, err := method.Preconditioner(nil)
			return usage(err)
		},
		cfg: func(_ *pflag.FlagSet, c *krrlab.Config) (err error) {
			c.Tol, c.MaxIter = method.Tol, method.MaxIter
			c.Precond, err = method.Preconditioner(c.Kernel)
			return err
		},
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
			return l.Run(ctx, options.Elem().Interface().(stage.Runner))
		},
	}
	if h, ok := d.Options.(interface{ Hint() string }); ok {
		c.hint = func() string { h, _ = options.Elem().Interface().(interface{ Hint() string }); return h.Hint() }
	}
	for _, t := range d.Tables {
		c.tables = append(c.tables, stageTable{t, new(string)})
	}
	return a.stageCommand(c)
}

// stageTable is a table of a stage, and the file it is written to.
type stageTable struct {
	stage.Table
	path *string
}
