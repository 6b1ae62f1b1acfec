package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab/schema"
)

// optionValue is an option as the value of a flag, whose errors are those of the command line.
type optionValue struct{ *schema.Field }

func (v optionValue) Set(text string) error { return usage(v.Field.Set(text)) }

// usage marks an error as one of the command line.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return errUsage{err}
}

// withOptions makes the options in the struct that options points to flags of a command, and run what it runs with them.
func withOptions(cmd *cobra.Command, options any, run func(ctx context.Context, args []string) error) *cobra.Command {
	s := addOptions(cmd.Flags(), options)
	cmd.Flags().SortFlags = false
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.Settle(); err != nil {
			return errUsage{err}
		}
		return run(cmd.Context(), args)
	}
	return cmd
}

// addOptions adds the flags of the options in the struct that options points to. Settle of what it returns is to be called
// once they are parsed.
func addOptions(p *pflag.FlagSet, options any) *schema.Schema {
	s := schema.Of(options)
	addFields(p, s.Fields)
	return s
}

func addFields(p *pflag.FlagSet, fields []*schema.Field) {
	for _, o := range fields {
		if o.Name == "" {
			continue
		}
		f := p.VarPF(optionValue{o}, o.Name, "", o.Help)
		if f.DefValue = o.Default; o.IsBoolFlag() {
			f.NoOptDefVal = "true"
		}
	}
}
