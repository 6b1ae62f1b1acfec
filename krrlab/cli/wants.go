package cli

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

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
