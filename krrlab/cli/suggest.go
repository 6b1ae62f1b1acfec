package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
)

// didYouMean returns the end of an error message that suggests prefix+word, or "" if word is "".
func didYouMean(prefix, word string) string {
	if word == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, word)
}

// suggestCommand returns the end of an error message that suggests the subcommand of cmd nearest to typed, or "" if
// none is near. If typed is a file, it suggests the flag that is missing before it.
func suggestCommand(cmd *cobra.Command, typed string) string {
	if _, err := os.Stat(typed); err == nil {
		for _, flag := range []string{"train", "in"} {
			if cmd.Flags().Lookup(flag) != nil {
				return didYouMean("--"+flag+" ", typed)
			}
		}
	}
	var names []string
	for _, command := range cmd.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	return didYouMean("", schema.Nearest(typed, names))
}

// flagSynonyms maps flag names of other programs to the flags of krrlab with the same meaning.
var flagSynonyms = map[string]string{
	"alpha": "lambda", "reg": "lambda", "ridge": "lambda", "bandwidth": "sigma", "length-scale": "sigma",
	"input": "train", "file": "train",
	"label": "target", "response": "target", "y": "target", "sep": "separator", "delimiter": "separator",
	"delim": "separator", "names": "header",
	"exclude": "drop", "ignore": "drop", "one-hot": "categorical", "fillna": "impute", "validation": "holdout",
	"test-size": "holdout",
	"output":    "out", "model-out": "out",
}

// flagError marks an error in the flags as an error of the command line, and suggests a flag if one was mistyped. If
// cmd has subcommands and the flags follow a mistyped one, it returns an error for the mistyped subcommand. options are
// those of cmd.
func flagError(cmd *cobra.Command, options *schema.Schema, err error) error {
	if usage, ok := errors.AsType[errUsage](err); ok { // the option refuses its value
		return usage
	}
	if typed := cmd.Flags().Args(); cmd.HasSubCommands() && len(typed) > 0 { // the flags follow a mistyped command
		return noArgs(cmd, typed)
	}
	unknownFlag, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknownFlag.GetSpecifiedShortnames() != "" {
		return errUsage{err}
	}
	var names []string
	typed := unknownFlag.GetSpecifiedName()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	ours, isSynonym := flagSynonyms[typed]
	if option := options.Lookup(cmp.Or(ours, typed)); option != nil {
		if owner, key := option.Owner(); owner != nil {
			return usagef("%w; say %s=… in --%s", err, key, owner.Name)
		}
	}
	if isSynonym && cmd.Flags().Lookup(ours) != nil {
		return usagef("%w; did you mean --%s?", err, ours)
	}
	if flag, value := valueWithOption(typed); flag != "" && cmd.Flags().Lookup(flag) != nil {
		return usagef("%w; say --%s %q", err, flag, value)
	}
	return usagef("%w%s", err, didYouMean("--", schema.Nearest(typed, names)))
}

// valueWithOption returns the flag, precond or kernel, that has an option of this name in its value, and an example of
// such a value, such as "nystrom features=…". It returns "" if there is none.
func valueWithOption(name string) (flag, value string) {
	for _, kind := range stage.Kinds() {
		if !strings.HasSuffix(kind.Name, ":") && schema.Of(schema.Copy(kind.Zero)).Lookup(name) != nil {
			return "precond", kind.Name + " " + name + "=…"
		}
	}
	for _, kernelName := range kernel.Names() {
		if _, _, err := kernel.Parse(kernelName + " " + name + "=1"); err == nil {
			return "kernel", kernelName + " " + name + "=…"
		}
	}
	return "", ""
}

// checkDataName returns an error if typed is neither a data set of the registry nor a packed folder. It accepts "".
func checkDataName(typed string) error {
	var names []string
	for _, info := range datasets.Registry() {
		if info.Name == typed {
			return nil
		}
		names = append(names, info.Name)
	}
	if typed == "" || datasets.IsPacked(typed) {
		return nil
	}
	return usagef("unknown data set %q: krrlab data list shows the names%s", typed,
		didYouMean("", schema.Nearest(typed, names)))
}
