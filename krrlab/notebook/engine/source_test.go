package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// sources contains packages that are not compiled in: the language version, followed by the files.
var sources = map[string][]string{
	"ex.org/count": {"go1.26", `package count

import ("errors"; "ex.org/deep")

type fault struct{ what string }

func (f fault) Error() string { return "fault: " + f.what }

// kind has a value of a type that no function mentions.
type kind bool

func (k kind) String() string { return "kind" }

const Kind = kind(true)

var Err = fault{"none"}

var total = start()

func start() int { return deep.Base() }

func init() { total += 1 }

func Add(n int) (int, error) {
	if n < 0 {
		return total, Err
	}
	total += n
	return total, nil
}

func IsFault(err error) bool { var f fault; return errors.As(err, &f) }

func unused() { nowhere.Name() }
`, `package count

import "sort"

type nowhereType struct{}

func (nowhereType) Name() string { return "" }

var nowhere nowhereType

type Sorted[T int | string] struct{ list []T }

func (s *Sorted[T]) Len() int { return len(s.list) }
func (s *Sorted[T]) Less(i, j int) bool { return s.list[i] < s.list[j] }
func (s *Sorted[T]) Swap(i, j int) { s.list[i], s.list[j] = s.list[j], s.list[i] }
func (s *Sorted[T]) String() string { return "sorted" }

// Sort passes a type that exists only here to compiled code.
func Sort[T int | string](l ...T) []T { s := &Sorted[T]{l}; sort.Sort(s); return s.list }

func New[T int | string](l ...T) *Sorted[T] { return &Sorted[T]{l} }

type hidden struct{ n int }

func (h *hidden) Inc() int { h.n++; return h.n }

func Hidden() interface{ Inc() int } { return &hidden{} }
`},
	"ex.org/deep": {"go1.26", "package deep\n\nvar calls int\n\nfunc Base() int { calls++; return 10 * calls }\n"},
	"ex.org/old": {"go1.20",
		"package old\n\nfunc Loop() (out []int) { var fs []func() int; for i := 0; i < 3; i++ { fs = append(fs, " +
			"func() int { return i }) }; for _, f := range fs { out = append(out, f()) }; return }\n"},
	"ex.org/asm":    {"go1.26", "package asm\n\nfunc Fast() int\n"},
	"ex.org/broken": {"go1.26", "package broken\n\nfunc F() int { return \"\" }\n"},
	"ex.org/deeper": {"go1.26", "package deeper\n\nimport _ \"ex.org/none\"\n"},
	"ex.org/boom":   {"go1.26", "package boom\n\nvar X = func() int { panic(\"at once\") }()\n"},
}

// findSource returns the package of sources with the given path.
func findSource(path string) (*Source, error) {
	files := sources[path]
	if files == nil {
		return nil, &MissingPackagesError{Paths: []string{path}}
	}
	found := &Source{Path: path, GoVersion: files[0], Files: map[string][]byte{}}
	for i, text := range files[1:] {
		found.Files[fmt.Sprintf("%s/%d.go", path, i)] = []byte(text)
	}
	return found, nil
}

// TestInterpretedSource imports packages that are interpreted. They must be initialized once, all cells must see the
// same variables and types, and packages that cannot be interpreted are errors with the position of the cause.
func TestInterpretedSource(t *testing.T) {
	e, run := openEngine(t)
	e.FindSource = findSource
	for _, test := range []struct{ code, want string }{
		{`import "ex.org/count"`, ""},
		{`count.Add(1)`, "→12→<nil>"},
		{`func more() int { n, _ := count.Add(2); return n }`, ""},
		{`more()`, "→14"},
		{`import c "ex.org/count"` + "\nc.Add(0)", "→14→<nil>"},
		{`_, err := count.Add(-1); fmt.Println(err, count.IsFault(err), errors.Is(err, count.Err))`,
			"fault: none true true\n"},
		{`fmt.Println(err == error(count.Err), count.Kind)`, "true kind\n"},
		{`fmt.Println(count.Sort(3, 1, 2), count.Sort("b", "a"))`, "[1 2 3] [a b]\n"},
		{`s := count.New(5, 4)`, ""},
		{`sort.Sort(s); fmt.Println(s, s.Less(0, 1))`, "sorted true\n"},
		{`h := count.Hidden(); h.Inc()`, "→1"},
		{`fmt.Println(h.Inc()); type loud struct{ *count.Sorted[int] }`, "2\n"},
		{`fmt.Println(loud{s}, sort.IsSorted(loud{s}))`, "sorted true\n"},
		{`import "ex.org/old"` + "\nfmt.Println(old.Loop())", "[3 3 3]\n"},
		{`import "ex.org/asm"`,
			"✗cell:1:21: ex.org/asm cannot be interpreted: ex.org/asm/0.go:3:1: Fast is not written in Go"},
		{`import "ex.org/broken"`,
			"✗cell:1:21: ex.org/broken cannot be interpreted: ex.org/broken/0.go:3:23: cannot use \"\" (untyped " +
				"string constant) as int value in return statement"},
		{`import "ex.org/none"`, "✗not in this kernel: ex.org/none"},
		{`import "ex.org/deeper"`,
			"✗cell:1:21: ex.org/deeper cannot be interpreted: ex.org/deeper/0.go:3:10: could not import " +
				"ex.org/none (not in this kernel: ex.org/none)"},
		{`import "ex.org/boom"` + "\nboom.X", "✗at once"},
		{`count.Add(0)`, "→14→<nil>"},
	} {
		testkit.Equal(t, run(test.code), test.want, test.code)
	}
	if pkg := e.Package("ex.org/count"); pkg == nil || pkg.Scope().Lookup("Add") == nil {
		t.Error("completion does not know the package")
	}
}

// TestCompilesOnlyUsedFunctions checks that a cell compiles only those functions of an interpreted package that it
// uses.
func TestCompilesOnlyUsedFunctions(t *testing.T) {
	var source strings.Builder
	source.WriteString("package big\n\nfunc One() int { return 1 }\n")
	for i := range 300 {
		fmt.Fprintf(&source,
			"func F%d(x []int) (n int) { for i := range x { if x[i] > %d { n += F%d(x[:i]) } }; return n }\n", i, i,
			max(i-1, 0))
	}
	e, run := openEngine(t)
	e.FindSource = func(string) (*Source, error) {
		return &Source{Path: "ex.org/big", GoVersion: "go1.26",
			Files: map[string][]byte{"big.go": []byte(source.String())}}, nil
	}
	if got := run("import \"ex.org/big\"\nbig.One()"); got != "→1" {
		t.Fatalf("got %q, want →1", got)
	}
	oneFunction := testing.AllocsPerRun(2, func() { run("big.One()") })
	allFunctions := testing.AllocsPerRun(2, func() { run("big.F299(nil)") })
	if oneFunction > allFunctions/20 {
		t.Errorf("%v allocations for one function, %v for 300", oneFunction, allFunctions)
	}
}
