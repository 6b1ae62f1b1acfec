package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab/base/schema"
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

// withOptions makes options the flags of a command, and run what it runs when they are settled and the files that they
// name are checked.
func withOptions(cmd *cobra.Command, s *schema.Schema, run func(ctx context.Context,
	args []string) error) *cobra.Command {
	addOptions(cmd.Flags(), s)
	cmd.Flags().SortFlags = false
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.Settle(); err != nil {
			return errUsage{err}
		}
		if cmd.Annotations == nil { // else the ranks are joined before
			if err := checkFiles(filesOf(s)); err != nil {
				return err
			}
		}
		return run(cmd.Context(), args)
	}
	return cmd
}

// commandLine returns the flags that were given, as a shell takes them.
func commandLine(s *schema.Schema) (text string) {
	for _, o := range s.Fields {
		if o.Given() {
			text += o.Flag()
		}
	}
	return text
}

// addOptions adds the flags of options.
func addOptions(p *pflag.FlagSet, s *schema.Schema) {
	for _, o := range s.Fields {
		if o.Name == "" {
			continue
		}
		f := p.VarPF(optionValue{o}, o.Name, "", o.Help)
		f.Hidden = o.Hidden
		if f.DefValue = o.Default; o.IsBoolFlag() {
			f.NoOptDefVal = "true"
		}
	}
}
