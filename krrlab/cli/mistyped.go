package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/schema"
)

// meant puts the question into words; "" where there is nothing to ask.
func meant(prefix, word string) string {
	if word == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, word)
}

// commandMeant asks for the subcommand that was mistyped, or the flag that was left out before a
// file.
func commandMeant(cmd *cobra.Command, typed string) string {
	if _, err := os.Stat(typed); err == nil {
		for _, flag := range []string{"train", "in"} {
			if cmd.Flags().Lookup(flag) != nil {
				return meant("--"+flag+" ", typed)
			}
		}
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return meant("", schema.Nearest(typed, names))
}

// foreign are flags by the names that other programs have for them.
var foreign = map[string]string{
	"alpha": "lambda", "reg": "lambda", "ridge": "lambda", "bandwidth": "sigma", "length-scale": "sigma",
	"input": "train", "file": "train",
	"label": "target", "response": "target", "y": "target", "sep": "separator", "delimiter": "separator",
	"delim": "separator", "names": "header",
	"exclude": "drop", "ignore": "drop", "one-hot": "categorical", "fillna": "impute", "validation": "holdout",
	"test-size": "holdout",
	"output":    "out", "model-out": "out",
}

// flagError marks an error of the flags as one of the command line, and asks for the flag that was
// mistyped.
func flagError(cmd *cobra.Command, err error) error {
	if ours, ok := errors.AsType[errUsage](err); ok { // a value that its option refuses
		return ours
	}
	if typed := cmd.Flags().Args(); cmd.HasSubCommands() && len(typed) > 0 { // a mistyped command before its flags
		return noArgs(cmd, typed)
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return errUsage{err}
	}
	var names []string
	typed := unknown.GetSpecifiedName()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if ours := foreign[typed]; cmd.Flags().Lookup(ours) != nil {
		return usagef("%w; did you mean --%s?", err, ours)
	}
	return usagef("%w%s", err, meant("--", schema.Nearest(typed, names)))
}

// knownData refuses a name that no data set and no packed folder has; "" is none.
func knownData(typed string) error {
	var names []string
	for _, i := range datasets.Registry() {
		if i.Name == typed {
			return nil
		}
		names = append(names, i.Name)
	}
	if typed == "" || datasets.IsPacked(typed) {
		return nil
	}
	return usagef("unknown data set %q: krrlab data list shows the names%s", typed, meant("", schema.Nearest(typed, names)))
}
