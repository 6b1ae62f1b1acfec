package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab/base/schema"
)

// optionValue adapts an option to pflag.Value. Its errors are errors of the command line.
type optionValue struct{ *schema.Field }

// Set sets the option from a text. An error is marked as an error of the command line.
func (v optionValue) Set(text string) error { return asUsageError(v.Field.Set(text)) }

// asUsageError marks an error as an error of the command line; nil stays nil.
func asUsageError(err error) error {
	if err == nil {
		return nil
	}
	return errUsage{err}
}

// withOptions adds the options of s as flags to cmd, sets cmd.RunE and returns cmd. The command checks the options and
// the files that they name, and then calls run. A command on ranks checks the files in startRun.
func withOptions(cmd *cobra.Command, s *schema.Schema, run func(ctx context.Context,
	args []string) error) *cobra.Command {
	addOptions(cmd.Flags(), s)
	cmd.Flags().SortFlags = false
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, s, err) })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.Complete(); err != nil {
			return errUsage{err}
		}
		if cmd.Annotations == nil { // the command does not run on all ranks
			if err := checkOptionFiles(s); err != nil {
				return err
			}
		}
		return run(cmd.Context(), args)
	}
	return cmd
}

// flagCommand calls withOptions for a command whose function run needs only its flags f. The command refuses positional
// arguments unless cmd.Args is set.
func flagCommand[F any](cmd *cobra.Command, s *schema.Schema, f F, run func(ctx context.Context,
	f F) error) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = noArgs
	}
	return withOptions(cmd, s, func(ctx context.Context, _ []string) error { return run(ctx, f) })
}

// parentCommand adds the subcommands to cmd, which shows its help if it is called without one of them.
func parentCommand(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = noArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subcommands...)
	return cmd
}

// commandLine returns the flags that were set on the command line, quoted for a shell.
func commandLine(s *schema.Schema) (text string) {
	for _, option := range s.Fields {
		text += option.ShellWords()
	}
	return text
}

// addOptions adds a flag to flags for each option of s that has a name. The flag of an option that is written in the
// value of another flag (Field.Owner) is hidden: --tiles sparse means --storage tiles=sparse.
func addOptions(flags *pflag.FlagSet, s *schema.Schema) {
	for _, option := range s.Fields {
		if option.Name == "" {
			continue
		}
		flag := flags.VarPF(optionValue{option}, option.Name, "", option.Help)
		owner, _ := option.Owner()
		flag.Hidden = owner != nil
		flag.DefValue = option.Default
		if strings.Contains(option.Help, "(default: ") { // do not show the default twice
			flag.DefValue = ""
		}
		if option.IsBoolFlag() {
			flag.NoOptDefVal = "true" // the value of the flag without "=value"
		}
	}
}
