package schema

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestParseBytes checks numbers of bytes with units, which are powers of 1000, or of 1024 with an i. A number must be
// at least one byte and at most 2⁶⁰.
func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1B": 1, "2k": 2000, "2K": 2000, "3MB": 3e6, "1.5GB": 15e8, "2T": 2e12, "1KiB": 1024, "2MiB": 2 << 20,
		"3 GiB": 3 << 30,
		"1TiB":  1 << 40, "1e9": 1e9, "1048576TiB": 1 << 60,
		"": 0, "0": 0, "0.9": 0, "-1": 0, "x": 0, "1X": 0, "1Bi": 0, "1kM": 0, "nan": 0, "1048577TiB": 0, "1e30": 0,
	} {
		if got, err := parseBytes(text); got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

// TestIntervalChecks checks which ends belong to an interval.
func TestIntervalChecks(t *testing.T) {
	for tag, want := range map[string][5]bool{ // whether 0, 0.5, 1, ∞ and NaN are inside
		"(0,1)": {false, true, false, false, false}, "(0,1]": {false, true, true, false, false},
		"[0,1)": {true, true, false, false, false}, "[0,1]": {true, true, true, false, false},
		">0": {false, true, true, false, false}, ">=0": {true, true, true, true, false},
		"positive": {false, true, true, false, false}, ">=1": {false, false, true, true, false},
	} {
		interval := parseCheck(tag)
		for i, v := range []float64{0, 0.5, 1, math.Inf(1), math.NaN()} {
			testkit.Equal(t, interval.contains(v), want[i], tag, v)
		}
	}
}

// kind is a string whose method Type returns another name than string.
type kind string

func (*kind) Type() string { return "kind" }

// conditionalOptions are options that depend on others.
type conditionalOptions struct {
	Kind  kind       `flag:"kind" check:"one of plain run:"`
	Other bool       `flag:"other"`
	Part  int        `flag:"part" with:"kind=plain|kind=run:x|kind=|gone=1" check:">=0"`
	Both  *int       `flag:"both" with:"other" not:"part|gone"`
	Words []string   `flag:"words" file:"read"`
	Level percentage `flag:"level" default:"5%"`
	Seed  uint64     `flag:"seed" check:">=2"`
	Zero  int        `flag:"zero" default:"3" zero:"-1" check:">=-1"`
}

// TestConditions checks values that begin with a name, options that depend on a value of another option, and the texts,
// defaults and types that a command shows.
func TestConditions(t *testing.T) {
	for want, args := range map[string][]string{
		"<nil>": {"kind", "run:a"}, "--kind \"run\": want one of plain, run:": {"kind", "run"},
		"--kind \"plainer\": want one of plain, run:":               {"kind", "plainer"},
		"--part goes with --kind plain or run:x only":               {"part", "0", "kind", "run:a"},
		"--seed 1: want at least 2":                                 {"seed", "1"},
		"--both goes with --other":                                  {"both", "1"},
		"--both and --part exclude each other":                      {"both", "1", "part", "1", "kind", "plain"},
		"--words @nowhere: open nowhere: no such file or directory": {"words", "@nowhere"},
	} {
		opts := conditionalOptions{}
		s := Of(&opts)
		var err error
		for i := 0; i+1 < len(args) && err == nil; i += 2 {
			err = s.Lookup(args[i]).Set(args[i+1])
		}
		if err == nil {
			err = s.Complete()
		}
		testkit.Equal(t, fmt.Sprint(err), want, args)
	}
	opts := conditionalOptions{Part: 5, Both: new(1)}
	s := Of(&opts).SetHelp(map[string]string{"words": "some words", "gone": "x"})
	for name, want := range map[string][4]string{ // text, default, type, file
		"kind": {"", "", "kind", ""}, "part": {"5", "5", "int", ""}, "both": {"1", "1", "int", ""},
		"words": {"", "", "stringSlice", "read"}, "level": {"5%", "5%", "string", ""}, "zero": {"3", "3", "int", ""},
	} {
		f := s.Lookup(name)
		testkit.Equal(t, [4]string{f.String(), f.Default, f.Type(), f.File}, want, name)
		testkit.Equal(t, s.IsSet(name), false, name)
	}
	testkit.Equal(t, s.Lookup("words").Help, "some words")
	testkit.OK(t, s.Lookup("zero").Set("0"))
	testkit.OK(t, s.Lookup("words").Set("\"a\nb\""))
	testkit.OK(t, s.Lookup("words").Set(""))
	testkit.Equal(t, s.IsSet("zero") && opts.Zero == -1 && s.Lookup("words").String() == "\"a\nb\"", true, opts)
	testkit.Equal(t, Complete(&conditionalOptions{Kind: "x"}).Error(), `Kind "x": want one of plain, run:`)
	// A value without a text, of a type that parses its own text, is an error.
	testkit.Fails(t, Complete(&struct {
		Size side `flag:"side"`
	}{7}), `Size "unknown (7)": want one of left, right`)
	testkit.Panics(t, map[string]func(){"a kind of value that is no option": func() {
		_ = Of(&struct {
			A complex128 `flag:"a"`
		}{}).Lookup("a").Set("1")
	}})
}

// side is an enumeration that parses its own text.
type side int

var sides = []string{"left", "right"}

func (s side) String() string { return enum.Name(sides, s) }

func (s *side) UnmarshalText(b []byte) (err error) {
	*s, err = enum.Parse[side]("side", sides, string(b))
	return err
}

// memberOptions are options that are written in the flags of others.
type memberOptions struct {
	Plot  string        `flag:"plot" file:"write"`
	Title *string       `flag:"title" in:"plot"`
	Wait  time.Duration `flag:"plot-wait" in:"plot wait" default:"1m"`
	Tune  bool          `flag:"tune"`
	Kind  string        `flag:"kind" in:"tune" default:"a" check:"one of a b"`
	Racer []string      `flag:"racer" in:"plot"`
	Mark  string        `flag:"mark" in:"plot" empty:"a character"`
}

// TestMembers checks options that are written within the flag of another option, with blanks in values, and how they
// are written to a command line.
func TestMembers(t *testing.T) {
	for _, test := range []struct{ args, plot, title, kind, line string }{
		{"plot=my fig.svg", "my fig.svg", "-", "a", " --plot 'my fig.svg'"},
		{"plot=my fig.svg title=A b = c wait=5m", "my fig.svg", "A b = c", "a",
			" --plot 'my fig.svg title=A b = c wait=5m0s'"},
		{"plot=a.svg ./subtitle=x title=", "a.svg ./subtitle=x", "", "a", " --plot 'a.svg ./subtitle=x title='"},
		{"plot=a.svg title=x wait=60s|plot=b.svg title=x wait=1m", "b.svg", "x", "a",
			" --plot 'b.svg title=x wait=1m0s'"},
		{"plot=title=x y|plot=a.svg", "a.svg", "x y", "a", " --plot 'a.svg title=x y'"},
		{"plot=title=x|tune=kind=b", "", "x", "b", " --plot=title=x --tune=kind=b"},
		{"tune=kind=b|tune=true", "", "-", "b", " --tune=kind=b"},
		{"plot=racer=p q racer=r", "", "-", "a", " --plot='racer=p q,r'"},
		{"plot= a.svg ", " a.svg ", "-", "a", " --plot ' a.svg '"},
		{"plot= a.svg title= x  wait=5m ", "a.svg", "x", "a", " --plot 'a.svg title=x wait=5m0s'"},
	} {
		var opts memberOptions
		s, line := Of(&opts), ""
		for _, arg := range strings.Split(test.args, "|") {
			name, text, _ := strings.Cut(arg, "=")
			testkit.OK(t, s.Lookup(name).Set(text))
		}
		title := "-"
		if opts.Title != nil {
			title = *opts.Title
		}
		for _, f := range s.Fields {
			line += f.ShellWords()
		}
		testkit.Equal(t, [4]string{opts.Plot, title, opts.Kind, line},
			[4]string{test.plot, test.title, test.kind, test.line}, test.args)
		testkit.Equal(t, [2]bool{s.IsSet("plot"), opts.Tune},
			[2]bool{test.plot != "", strings.Contains(test.args, "tune")}, test.args)
	}
	s := Of(new(memberOptions))
	testkit.Equal(t, s.Lookup("tune").Set("kind=c").Error(), `--tune kind "c": want one of a, b`)
	testkit.OK(t, s.Lookup("plot").Set("a.svg wait=5m"))
	testkit.Equal(t, s.Lookup("plot").Set("b.svg wait=1m").Error(),
		`--plot wait: both "5m0s" and "1m0s" are given: want one value`)
	for _, text := range []string{"a.svg titel=x", "a.svg titel=x wait=5m", "titel=x"} {
		err := s.Lookup("plot").Set(text)
		if err == nil || !strings.Contains(err.Error(),
			"there is no option titel=: want title= or wait= or racer= or mark=; a file") {
			t.Errorf("%s: %v", text, err)
		}
	}
	testkit.OK(t, Of(new(memberOptions)).Lookup("plot").Set("./my titel=x"))
	testkit.Equal(t, s.Lookup("plot").Set("a.svg mark=  title=x").Error(), `--plot mark "": want a character`)
	owner, key := s.Lookup("plot-wait").Owner()
	testkit.Equal(t, owner.Name+key, "plotwait")
	owner, _ = s.Remove("plot").Lookup("title").Owner()
	testkit.Equal(t, owner == nil, true)
}

// TestReadLists checks that the numbers in a file replace its name in an option of a value, and that other texts,
// such as the command of a process, do not change.
func TestReadLists(t *testing.T) {
	file := filepath.Join(t.TempDir(), "marks")
	testkit.OK(t, os.WriteFile(file, []byte("3, 14\n15\n"), 0o644))
	for text, want := range map[string]string{
		"nystrom landmarks=@" + file:            "nystrom landmarks=3,14,15",
		"name=mine nystrom  landmarks=@" + file: "name=mine nystrom landmarks=3,14,15",
		"process:python3  m.py --in=@" + file:   "process:python3  m.py --in=@" + file,
		"name=mine process:m.py  in=@nowhere":   "name=mine process:m.py  in=@nowhere",
		"nystrom  features=5":                   "nystrom  features=5",
		"":                                      "",
	} {
		got, err := ReadLists(text)
		testkit.OK(t, err)
		testkit.Equal(t, got, want)
	}
	_, err := ReadLists("nystrom landmarks=@nowhere")
	testkit.Fails(t, err, "landmarks=@nowhere: open nowhere: no such file or directory")

	var opts struct {
		Precond string `flag:"precond" options:"own"`
	}
	testkit.OK(t, Of(&opts).Lookup("precond").Set("nystrom landmarks=@"+file))
	testkit.Equal(t, opts.Precond, "nystrom landmarks=3,14,15")
}
