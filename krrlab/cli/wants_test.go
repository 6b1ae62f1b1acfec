package cli

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestWants: a value that breaks the rule of its flag is refused with what is wanted; others, small ones and
// lists among them, are taken, and help says what it said.
func TestWants(t *testing.T) {
	p := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.Float64("width", 0.2, "")
	p.Float64("tol", 0, "")
	p.Float64Slice("grid", nil, "")
	p.Int("n", 0, "")
	p.Duration("time", time.Second, "")
	p.String("format", "auto", "")
	before := p.FlagUsages()
	wantPositive(p, "width", "grid")
	wantShare(p, "tol")
	wantAtLeast(p, 16, "n")
	wantTime(p, "time")
	wantOneOf(p, []string{"auto", "csv"}, "format")
	if after := p.FlagUsages(); after != before {
		t.Errorf("help\n%swas\n%s", after, before)
	}
	for arg, want := range map[string]string{
		"--width=1e-300": "", "--width=0": "--width 0: want a positive number, such as 0.2", "--width=NaN": "--width NaN: want a positive number, such as 0.2",
		"--grid=1e-9,2": "", "--grid=1,-1,2": "--grid -1: want a positive number",
		"--tol=0.5": "", "--tol=1": "--tol 1: want a number between 0 and 1", "--tol=-0": "--tol -0: want a number between 0 and 1",
		"--n=16": "", "--n=0x10": "", "--n=0xf": "--n 0xf: want at least 16", "--n=-1": "--n -1: want at least 16",
		"--time=1s": "", "--time=0s": "--time 0s: want a positive time",
		"--format=csv": "", "--format=": "", "--format=xml": `--format "xml": want one of auto, csv`,
		"--n=x": `--n "x": want a whole number`,
	} {
		got := ""
		if err := p.Parse([]string{arg}); err != nil {
			got = flagError(nil, err).Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
		}
	}
}
