package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/estimate"
)

// checked is the value of a flag that is refused, as it is parsed, where rule says what is wrong with it.
type checked struct {
	pflag.Value
	rule func(value string) error
}

func (c checked) Set(s string) error {
	if err := c.Value.Set(s); err != nil {
		return err
	}
	return c.rule(s)
}

// want gives flags a rule for their values.
func want(p *pflag.FlagSet, rule func(f *pflag.Flag, value string) error, names ...string) {
	for _, name := range names {
		f := p.Lookup(name)
		f.Value = checked{f.Value, func(value string) error { return rule(f, value) }}
	}
}

// wantNumber gives flags of numbers, or of lists of numbers, a rule for each of them; text says what is wanted.
func wantNumber(p *pflag.FlagSet, right func(v float64) bool, text string, names ...string) {
	want(p, func(f *pflag.Flag, value string) error {
		for _, s := range strings.Split(value, ",") {
			v, err := strconv.ParseFloat(s, 64)
			if whole, e := strconv.ParseInt(s, 0, 64); e == nil { // 0x10, which is no float
				v, err = float64(whole), nil
			}
			if err == nil && !right(v) {
				return usagef("--%s %s: want %s", f.Name, strings.TrimSpace(s), text)
			}
		}
		return nil
	}, names...)
}

func wantPositive(p *pflag.FlagSet, names ...string) {
	for _, name := range names {
		text := "a positive number"
		if of := p.Lookup(name).DefValue; of != "0" && of != "" && of != "[]" {
			text += ", such as " + of
		}
		wantNumber(p, func(v float64) bool { return v > 0 && !math.IsInf(v, 1) }, text, name)
	}
}

func wantAtLeast(p *pflag.FlagSet, least int, names ...string) {
	wantNumber(p, func(v float64) bool { return v >= float64(least) }, "at least "+strconv.Itoa(least), names...)
}

// wantShare is for numbers between 0 and 1, the ends not among them.
func wantShare(p *pflag.FlagSet, names ...string) {
	wantNumber(p, func(v float64) bool { return v > 0 && v < 1 }, "a number between 0 and 1", names...)
}

func wantTime(p *pflag.FlagSet, name string) {
	want(p, func(f *pflag.Flag, value string) error {
		if d, err := time.ParseDuration(value); err == nil && d <= 0 {
			return usagef("--%s %v: want a positive time", name, d)
		}
		return nil
	}, name)
}

func wantOneOf(p *pflag.FlagSet, words []string, name string) {
	want(p, func(_ *pflag.Flag, value string) error {
		if value != "" && !slices.Contains(words, value) {
			return usagef("--%s %q: want one of %s", name, value, strings.Join(words, ", "))
		}
		return nil
	}, name)
}

// addConfidence adds the flag of a probability that a stage's intervals hold with.
func addConfidence(p *pflag.FlagSet, to *float64, usage string) {
	p.Float64Var(to, "confidence", estimate.DefaultConfidence, usage)
	want(p, func(*pflag.Flag, string) error {
		if err := estimate.CheckConfidence(*to); err != nil {
			return usagef("--%w", err)
		}
		return nil
	}, "confidence")
}

// nearest returns the word that a mistyped one most likely stands for: the one of the fewest
// typing errors away, at most a third of its letters; "" if there is none.
func nearest(typed string, words []string) string {
	best, least := "", len(typed)/3+1
	for _, w := range words {
		if d := typos(typed, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// typos returns the number of letters to put in, leave out, exchange or swap with their neighbor
// to make b of a (the optimal string alignment distance).
func typos(a, b string) int {
	x, y := []rune(a), []rune(b)
	d := make([][]int, len(x)+1)
	for i := range d {
		d[i] = make([]int, len(y)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			exchange := d[i-1][j-1]
			if x[i-1] != y[j-1] {
				exchange++
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, exchange)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(x)][len(y)]
}

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
	return meant("", nearest(typed, names))
}

// kinds says what a flag of each type takes.
var kinds = map[string]string{
	"float64": "a number", "int": "a whole number", "int64": "a whole number", "uint64": "a whole number, at least 0", "bool": "true or false",
	"float64Slice": "numbers separated by commas", "intSlice": "whole numbers separated by commas", "duration": "a time such as 30s or 5m",
}

// foreign are flags by the names that other programs have for them.
var foreign = map[string]string{
	"alpha": "lambda", "reg": "lambda", "ridge": "lambda", "bandwidth": "sigma", "length-scale": "sigma", "input": "train", "file": "train",
	"label": "target", "response": "target", "y": "target", "sep": "separator", "delimiter": "separator", "delim": "separator", "names": "header",
	"exclude": "drop", "ignore": "drop", "one-hot": "categorical", "fillna": "impute", "validation": "holdout", "test-size": "holdout",
	"output": "out", "model-out": "out",
}

// flagError marks an error of the flags as one of the command line, and asks for the flag that was
// mistyped.
func flagError(cmd *cobra.Command, err error) error {
	if ours, ok := errors.AsType[errUsage](err); ok { // a rule of wants.go
		return ours
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := invalid.GetFlag()
		if of, ok := kinds[f.Value.Type()]; ok {
			return usagef("--%s %q: want %s", f.Name, invalid.GetValue(), of)
		}
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
	return usagef("%w%s", err, meant("--", nearest(typed, names)))
}

// dataMeant asks for the data set that was mistyped.
func dataMeant(typed string) string {
	var names []string
	for _, i := range datasets.Registry() {
		names = append(names, i.Name)
	}
	return meant("", nearest(typed, names))
}
