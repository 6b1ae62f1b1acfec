package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// color is an option whose type has Names and Set.
type color int

var colors = []string{"red", "green"}

func (c color) String() string      { return colors[c] }
func (c color) Names() []string     { return colors }
func (c *color) Set(s string) error { *c = color(slices.Index(colors, s)); return nil }

// oneOrTwo is a text type whose values are "one" and "two".
type oneOrTwo string

func (oneOrTwo) Names() []string { return []string{"one", "two"} }

// percentage is an option whose type parses its own text, such as 90%.
type percentage struct{ v float64 }

func (p *percentage) UnmarshalText(b []byte) (err error) {
	if _, err = fmt.Sscanf(string(b), "%g%%", &p.v); err != nil {
		err = fmt.Errorf("%q: want a percentage such as 90%%", b)
	}
	return err
}
func (p percentage) String() string { return fmt.Sprintf("%g%%", p.v) }

// embeddedOptions are options in an embedded struct, with help for one of them.
type embeddedOptions struct {
	Color color    `flag:"color" help:"red or green"`
	Word  oneOrTwo `flag:"word"`
}

func (embeddedOptions) Help() map[string]string {
	return map[string]string{"word": strings.Repeat("long ", 3)}
}

// allOptions are options of every type, with every kind of check and condition.
type allOptions struct {
	embeddedOptions
	Share   float64       `flag:"share" default:"0.95" check:"(0,1)"`
	Damping float64       `flag:"damping" check:"(0,1]" with:"color=green"`
	Target  float64       `flag:"target" default:"30" check:">1"`
	Below   int           `flag:"below" default:"2000" check:">=-1" zero:"-1"`
	Counts  []int         `flag:"counts" default:"1,2,4" check:">=1"`
	Drop    []string      `flag:"drop" not:"keep|word"`
	Keep    []string      `flag:"keep"`
	Level   percentage    `flag:"level" with:"keep"`
	Limit   time.Duration `flag:"limit" default:"10m" check:"positive"`
	Mode    string        `flag:"mode" default:"auto" check:"one of auto yes no"`
	Coef    *float64      `flag:"coef" check:"positive"`
	Size    float64       `flag:"size" check:"[1,40]" not:"color=green"`
	Part    float64       `flag:"part" check:"[0,1)"`
	Seed    uint64        `flag:"seed" default:"1"`
	Bytes   int64         `flag:"bytes" unit:"bytes"`
	Quiet   bool          `flag:"quiet"`
	Steps   int           `default:"150" check:">=1"` // no flag
	Done    func()
}

// Help has another text for an option of the embedded struct.
func (allOptions) Help() map[string]string { return map[string]string{"color": "another"} }

// parseFlags sets the options by flags of the form --name=value and completes them.
func parseFlags(opts *allOptions, args ...string) (*Schema, error) {
	optionSchema := Of(opts)
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if err := optionSchema.Lookup(name).Set(value); err != nil {
			return optionSchema, err
		}
	}
	return optionSchema, optionSchema.Complete()
}

// TestValuesAndDefaults checks that options of every type are read and written, and have their defaults.
func TestValuesAndDefaults(t *testing.T) {
	opts := allOptions{Mode: "yes"} // a value of the Go caller is the default of the flag
	list := filepath.Join(t.TempDir(), "list")
	testkit.OK(t, os.WriteFile(list, []byte("3\n 5,8\n"), 0o600))
	s, err := parseFlags(&opts, "--color=green", "--damping=1", "--below=0", "--counts=0x10, 3", "--counts=@"+list,
		"--counts=010", `--drop=a,"b,""c"`,
		"--limit=30s", "--coef=2", "--bytes=1.5kB", "--quiet=true")
	testkit.OK(t, err)
	want := allOptions{
		embeddedOptions: embeddedOptions{Color: 1}, Share: 0.95, Damping: 1, Target: 30, Below: -1,
		Counts: []int{16, 3, 3, 5, 8, 10}, Mode: "yes", Drop: []string{"a", `b,"c`}, Limit: 30 * time.Second,
		Coef: new(2.0), Seed: 1,
		Bytes: 1500, Quiet: true, Steps: 150,
	}
	if !reflect.DeepEqual(opts, want) {
		t.Errorf("%+v, want %+v", opts, want)
	}
	for name, want := range map[string][3]string{ // its text, default and type
		"color": {"green", "", "string"}, "share": {"0.95", "0.95", "float64"},
		"counts": {"16,3,3,5,8,10", "1,2,4", "intSlice"},
		"drop":   {`a,"b,""c"`, "", "stringSlice"},
		"limit":  {"30s", "10m0s", "duration"}, "mode": {"yes", "yes", "string"},
		"coef": {"2", "", "float64"}, "quiet": {"true", "", "bool"}, "seed": {"1", "1", "uint64"},
		"size": {"0", "", "float64"}, "word": {"", "", "string"},
	} {
		f := s.Lookup(name)
		testkit.Equal(t, [3]string{f.String(), f.Default, f.Type()}, want, name)
	}
	for name, want := range map[string]string{"quiet": " --quiet", "drop": ` --drop 'a,"b,""c"'`, "coef": " --coef 2"} {
		testkit.Equal(t, s.Lookup(name).ShellWords(), want)
	}
	testkit.OK(t, s.Lookup("quiet").Set("false"))
	testkit.Equal(t, s.Lookup("quiet").ShellWords(), " --quiet=false")
	if s.Lookup("color").Help != "another" || !s.IsSet("size", "bytes") || s.Remove("size").Lookup("size") != nil {
		t.Errorf("color has the help %q; or IsSet or Remove is wrong", s.Lookup("color").Help)
	}
	if (&Field{}).String() != "" || s.Lookup("word").Help != "long long long " || !s.Lookup("quiet").IsBoolFlag() {
		t.Error("String of an empty Field, the help of word or IsBoolFlag of quiet is wrong")
	}
}

// TestOptionErrors checks that an invalid option yields an error of one line that names the flag, or the field for a Go
// caller.
func TestOptionErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--share=1":               "--share 1: want a number between 0 and 1, such as 0.95",
		"--share=x":               `--share "x": want a number`,
		"--damping=1":             "--damping goes with --color green only",
		"--size=2 --color=green":  "--size and --color green exclude each other",
		"--bytes=2X":              `--bytes "2X": want a number of bytes such as 20GB, 512MiB or 8e9`,
		"--share=0":               "--share 0: want a number between 0 and 1, such as 0.95",
		"--share=nan":             "--share NaN: want a number between 0 and 1, such as 0.95",
		"--damping=2":             "--damping 2: want a number above 0 and at most 1",
		"--target=1":              "--target 1: want a number above 1, such as 30",
		"--target=inf":            "--target +Inf: want a number above 1, such as 30",
		"--below=-2":              "--below -2: want at least -1, such as 2000",
		"--below=1.5":             `--below "1.5": want a whole number`,
		"--counts=3,0":            "--counts 0: want at least 1, such as 1,2,4",
		"--counts=":               `--counts "": want whole numbers separated by commas`,
		`--drop="a`:               `--drop "\"a": want words separated by commas, those with one in quotes`,
		"--level=90%":             "--level goes with --keep",
		"--level=x":               `--level "x": want a percentage such as 90%`,
		"--limit=0s":              "--limit 0s: want a positive time, such as 10m",
		"--limit=5":               `--limit "5": want a time such as 30s or 5m`,
		"--mode=maybe":            `--mode "maybe": want one of auto, yes, no`,
		"--word=three":            `--word "three": want one of one, two`,
		"--color=blue":            `--color "blue": want one of red, green`,
		"--coef=0":                "--coef 0: want a positive number",
		"--coef=nan":              "--coef NaN: want a positive number",
		"--size=41":               "--size 41: want a number from 1 to 40",
		"--part=1":                "--part 1: want a number of at least 0 and below 1",
		"--seed=0b1":              `--seed "0b1": want a whole number, at least 0`,
		"--below=1_0":             `--below "1_0": want a whole number`,
		"--seed=-1":               `--seed "-1": want a whole number, at least 0`,
		"--quiet=perhaps":         `--quiet "perhaps": want true or false`,
		"--keep=a --level=9%":     "<nil>",
		"--drop=a --keep=b":       "--drop and --keep exclude each other",
		"--color=green --part=.5": "<nil>",
	} {
		if _, err := parseFlags(&allOptions{}, strings.Fields(args)...); fmt.Sprint(err) != want {
			t.Errorf("%s: %v\nwant %s", args, err, want)
		}
	}
	for want, opts := range map[string]*allOptions{
		"<nil>":                                  {Size: 40},
		"Steps -1: want at least 1, such as 150": {Steps: -1},
		"Word \"x\": want one of one, two":       {embeddedOptions: embeddedOptions{Word: "x"}},
		"Drop and Keep exclude each other":       {Drop: []string{"a"}, Keep: []string{"b"}},
		"Damping goes with Color green only":     {Damping: 0.5},
	} {
		if err := Complete(opts); fmt.Sprint(err) != want {
			t.Errorf("%+v: %v\nwant %s", opts, err, want)
		}
	}
}

// TestInvalidTags checks that invalid struct tags panic when they are read.
func TestInvalidTags(t *testing.T) {
	for name, opts := range map[string]any{
		"struct in place of a pointer": allOptions{},
		"unknown check": &struct {
			A int `check:"rather large"`
		}{},
		"bound that is no number": &struct {
			A int `check:">=x"`
		}{},
		"default that is no number": &struct {
			A int `default:"x"`
		}{},
		"unsupported type": &struct {
			A map[string]int `default:"x"`
		}{},
		"unsupported type without a default": &struct {
			A complex128 `flag:"a"`
		}{},
		"unexported option": &struct {
			a int `flag:"a"`
		}{},
		"empty interval": &struct {
			A int `check:"[10,5]"`
		}{},
		"default outside the interval": &struct {
			A int `default:"30" check:"[1,5]"`
		}{},
		"default that is no choice": &struct {
			A string `default:"c" check:"one of a b"`
		}{},
		"two flags with one name": &struct {
			A int `flag:"a"`
			B int `flag:"a"`
		}{},
	} {
		testkit.Panics(t, map[string]func(){name: func() { Of(opts) }})
	}
}

// TestNearest checks that Nearest returns the word with the smallest edit distance from a mistyped one, and "" for an
// unrelated one.
func TestNearest(t *testing.T) {
	words := []string{"iterations_to", "max_iter", "kappa"}
	for typed, want := range map[string]string{"iterations": "iterations_to", "Kapa": "kappa", "maxiter": "max_iter",
		"akppa": "kappa", "quux": "", "": ""} {
		testkit.Equal(t, Nearest(typed, words), want, typed)
	}
}
