package mutants

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// code is a package with something for every operator.
const code = `package a

import "fmt"

const tenth = 0.1

// Level has an error text and a String method, which stay as they are.
type Level int

func (l Level) String() string { return fmt.Sprintf("level %d", l+1) }

func (l *Level) Raise(by int) error {
	if by < 0 {
		return fmt.Errorf("by %d", by-1)
	}
	*l += Level(by)
	return nil
}

func Sum[T int | float64](x []T) (s T) {
	for i := 0; i < len(x); i++ {
		s += x[i]
	}
	return s
}

func Tenths(x []float64) []float64 {
	out := make([]float64, 0, len(x)+7)
	for _, v := range x {
		if v > 1 && v != 3 {
			out = append(out, v*tenth)
		}
	}
	return out
}

func Unseen(n int) int { return n % 3 }
`

// strong notices every mutant but those of Unseen; weak calls everything and looks at nothing.
const strong = `package a

import "testing"

func TestAll(t *testing.T) {
	l := Level(2)
	if l.Raise(-1) == nil || l.Raise(0) != nil || l.Raise(1) != nil || l != 3 {
		t.Fatal(l)
	}
	if Sum([]int{1, 2, 3}) != 6 || Sum([]float64{1, 2}) != 3 {
		t.Fatal("sum")
	}
	if x := Tenths([]float64{0.5, 1, 2, 3}); len(x) != 1 || x[0] != 2*tenth {
		t.Fatal(x)
	}
}
`

const weak = `package a

import "testing"

func TestNothing(t *testing.T) {
	l := Level(2)
	_ = l.Raise(1)
	Sum([]int{1, 2, 3})
	Tenths([]float64{0.5, 1, 2, 3})
}

func TestBroken(t *testing.T) { Tenths([]float64{2}); t.Error("always") }
`

// module writes a module with package a and its test and runs all its mutants.
func runAll(t *testing.T, source, test string, reasons map[string]string) Package {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "a/a.go": source, "a/a_test.go": test} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Run(t.Context(), Options{Root: root, Targets: []Target{{Package: "a", Share: 1}}, N: 1000, Slack: 1, Reasons: reasons})
	if err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(filepath.Join(root, "a/a.go")); err != nil || string(after) != source {
		t.Errorf("the source was changed: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(root, "a")); len(left) != 2 {
		t.Errorf("the folder holds %v", left)
	}
	return p[0]
}

func states(p Package) map[string]string {
	out := map[string]string{}
	for i := range p.Mutants {
		out[p.Mutants[i].Key()] = p.Mutants[i].State
	}
	return out
}

// TestStrong has a test that kills every mutant it reaches, and all operators in use.
func TestStrong(t *testing.T) {
	p := runAll(t, code, strong, nil)
	got := states(p)
	for key, want := range map[string]string{
		"a Level.Raise boundary: by < 0 => by <= 0":                                       killed,
		"a Level.Raise negate: by < 0 => !(by < 0)":                                       killed,
		"a Level.Raise remove: *l += Level(by)":                                           killed,
		"a Level.Raise return: func (l *Level) Raise(by int) error => return *new(error)": killed,
		"a Sum boundary: i < len(x) => i <= len(x)":                                       killed,
		"a Sum return: func Sum[T int | float64](x []T) (s T) => return":                  killed,
		"a Tenths arith: v*tenth => v / tenth":                                            killed,
		"a Tenths append: out = append(out, v*tenth)":                                     killed,
		"a Tenths negate: v > 1 && v != 3 => !(v > 1 && v != 3)":                          killed,
		"a Unseen const: 3 => 3 - 1":                                                      unreached,
	} {
		if got[key] != want && !overlapped(key, got) {
			t.Errorf("%s: %q, want %q", key, got[key], want)
		}
	}
	for key, state := range got {
		unseen := strings.HasPrefix(key, "a Unseen ")
		if (state == unreached) != unseen || state == survived {
			t.Errorf("%s: %s", key, state)
		}
		for _, never := range []string{"String", "by-1", "len(x)+7", "+ 7"} {
			if strings.Contains(key, never) {
				t.Errorf("%s is a mutant", key)
			}
		}
	}
	if p.Sites < 20 || len(p.Mutants) < 15 || p.Broken != 0 || len(p.Failing) > 0 {
		t.Errorf("%d places, %d mutants, %d broken, failing %v", p.Sites, len(p.Mutants), p.Broken, p.Failing)
	}
}

// overlapped reports whether a key is missing because another mutant has its place.
func overlapped(key string, got map[string]string) bool {
	_, drawn := got[key]
	return !drawn && (strings.Contains(key, "boundary") || strings.Contains(key, "arith") || strings.Contains(key, "const"))
}

// TestWeak has tests that notice only what hangs or panics.
func TestWeak(t *testing.T) {
	p := runAll(t, code, weak, map[string]string{"a Level.Raise boundary: by < 0 => by <= 0": "because", "a Level.Lower const: 1 => 2": "was", "b F const: 1 => 2": "is elsewhere"})
	for key, state := range states(p) {
		if state == killed && !strings.HasPrefix(key, "a Sum ") {
			t.Errorf("%s: %s", key, state)
		}
	}
	if !slices.Equal(p.Failing, []string{"a.TestBroken"}) {
		t.Errorf("failing without a mutant: %v", p.Failing)
	}
	if !slices.Equal(p.Stale, []string{"a Level.Lower const: 1 => 2"}) {
		t.Errorf("stale: %v", p.Stale)
	}
	tally := Total([]Package{p})
	if tally.Lived+tally.Killed != tally.Mutants || tally.Share() > 0.5 || tally.Excused != 1 {
		t.Errorf("%+v", tally)
	}
	var b bytes.Buffer
	if err := Write(&b, []Package{p}); err != nil || !strings.Contains(b.String(), "it fails without a mutant: a.TestBroken") || !strings.Contains(b.String(), "\tbecause\n") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// TestDraw checks that lines that move change no key and no draw, and another seed does.
func TestDraw(t *testing.T) {
	keys := func(source string, n, seed int) (out []string) {
		root := t.TempDir()
		for name, text := range map[string]string{"go.mod": "module a\n\ngo 1.26\n", "a.go": source} {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s, err := load(t.Context(), root, ".")
		if err != nil {
			t.Fatal(err)
		}
		drawn, _ := s.sample(s.sites(func(string) bool { return true }), n, seed)
		for _, x := range drawn {
			out = append(out, x.Key())
		}
		return out
	}
	source := "package a\n\nfunc F(x, y int) int {\n\tif x < y {\n\t\treturn x + y\n\t}\n\treturn x*y - 4\n}\n"
	moved := strings.Replace(source, "func F", "func G() bool { return true }\n\n// F is lower down.\nfunc F", 1)
	a := keys(source, 4, 1)
	if len(a) != 4 {
		t.Fatalf("%q", a)
	}
	if b := keys(source, 4, 1); !slices.Equal(a, b) {
		t.Errorf("another time %q, not %q", b, a)
	}
	all := keys(moved, 100, 1)
	for _, k := range a {
		if !slices.Contains(all, k) {
			t.Errorf("%s is gone", k)
		}
	}
	different := false
	for seed := 2; seed < 10; seed++ {
		different = different || !slices.Equal(a, keys(source, 4, seed))
	}
	if !different {
		t.Error("the seed changes nothing")
	}
}

func TestShare(t *testing.T) {
	if got := share(10, []Target{{Share: 1}, {Share: 6}, {Share: 3}}); !slices.Equal(got, []int{1, 6, 3}) {
		t.Error(got)
	}
	if got := share(2, []Target{{Share: 1}, {Share: 1}, {Share: 8}}); !slices.Equal(got, []int{1, 1, 1}) {
		t.Error(got)
	}
}

func TestReasons(t *testing.T) {
	if _, err := Reasons(); err != nil {
		t.Error(err)
	}
	got, err := readReasons(strings.NewReader("# words\na F const: 1 => 2\n\tone\n\ttwo\n\na G x\n\tthree\n"))
	if err != nil || len(got) != 2 || got["a F const: 1 => 2"] != "one two" || got["a G x"] != "three" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"\tone\n", "a F\n", "a F\na G\n\tone\n", "a F\n\tone\na F\n\ttwo\n"} {
		if got, err := readReasons(strings.NewReader(bad)); err == nil {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}

// TestTargets checks that the packages, their files and those that depend on them are there.
func TestTargets(t *testing.T) {
	for _, target := range All {
		for _, name := range append([]string{target.Package}, target.Dependants...) {
			if _, err := os.Stat(filepath.Join("..", "..", "..", name)); err != nil {
				t.Error(err)
			}
		}
		for _, name := range target.Files {
			if _, err := os.Stat(filepath.Join("..", "..", "..", target.Package, name)); err != nil {
				t.Error(err)
			}
		}
	}
}
