package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestModule checks this module.
func TestModule(t *testing.T) {
	tree, err := Load(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Packages) < 5 {
		t.Fatalf("only %d packages found", len(tree.Packages))
	}
	for _, v := range Check(tree) {
		t.Error(v)
	}
}

// TestFloors checks the lists themselves.
func TestFloors(t *testing.T) {
	for pair := range allowed {
		if floors[pair[0]] != floors[pair[1]] {
			t.Errorf("%s and %s are not on one floor", pair[0], pair[1])
		}
		if allowed[[2]string{pair[1], pair[0]}] != "" {
			t.Errorf("%s and %s may import each other", pair[0], pair[1])
		}
	}
}

const manual = "// Package p is here. It has a doc. It has three sentences.\n"

// tree writes files (name, source) into a module and loads it.
func tree(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module m\n"
	for name, src := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tr, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestRules breaks each rule in a small tree; want is "file:line: words".
func TestRules(t *testing.T) {
	mark := "TO" + "DO"
	for name, c := range map[string]struct {
		file, src, want string
	}{
		"clean":           {"krrlab/gram/a.go", manual + "package p\n\nimport _ \"m/krrlab/kernel\"\n", ""},
		"unlisted":        {"krrlab/new/a.go", manual + "package p\n", "krrlab/new/a.go:1: package krrlab/new has no floor; add it to floors"},
		"upward":          {"krrlab/kernel/a.go", manual + "package p\n\nimport _ \"m/krrlab/gram\"\n", "krrlab/kernel/a.go:4: krrlab/kernel (floor 1) imports krrlab/gram (floor 2)"},
		"same floor":      {"krrlab/gram/a.go", manual + "package p\n\nimport _ \"m/krrlab/precond\"\n", "krrlab/gram/a.go:4: krrlab/gram imports krrlab/precond of its own floor 2"},
		"same, allowed":   {"krrlab/points/a.go", manual + "package p\n\nimport _ \"m/krrlab/accel\"\n", ""},
		"same, reversed":  {"krrlab/accel/a.go", manual + "package p\n\nimport _ \"m/krrlab/points\"\n", "of its own floor 0"},
		"pcg and gram":    {"krrlab/pcg/a.go", manual + "package p\n\nimport _ \"m/krrlab/gram\"\n", "krrlab/pcg/a.go:4: pcg imports krrlab/gram"},
		"pcg and precond": {"krrlab/pcg/a.go", manual + "package p\n\nimport _ \"m/krrlab/precond\"\n", "pcg imports krrlab/precond"},
		"plots below":     {"krrlab/model/a.go", manual + "package p\n\nimport _ \"m/plots\"\n", "krrlab/model imports plots"},
		"plots above":     {"krrlab/a.go", manual + "package p\n\nimport _ \"m/plots\"\n", ""},
		"gonum/plot":      {"krrlab/a.go", manual + "package p\n\nimport _ \"gonum.org/v1/plot/vg\"\n", "imports gonum/plot; make a plots.Figure"},
		"gota":            {"theory/a.go", manual + "package p\n\nimport _ \"github.com/go-gota/gota/dataframe\"\n", "theory imports gota"},
		"gota in data":    {"datasets/a.go", manual + "package p\n\nimport _ \"github.com/go-gota/gota/dataframe\"\n", ""},
		"print":           {"krrlab/rng/a.go", manual + "package p\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n", "krrlab/rng/a.go:6: fmt.Println in krrlab/rng"},
		"print, renamed":  {"krrlab/rng/a.go", manual + "package p\n\nimport g \"fmt\"\n\nfunc f() { g.Printf(\"\") }\n", "fmt.Printf in krrlab/rng"},
		"print above":     {"krrlab/cli/a.go", manual + "package p\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n", ""},
		"sprint":          {"krrlab/rng/a.go", manual + "package p\n\nimport \"fmt\"\n\nfunc f() { _ = fmt.Sprint() }\n", ""},
		"stderr":          {"krrlab/rng/a.go", manual + "package p\n\nimport \"os\"\n\nvar w = os.Stderr\n", "os.Stderr in krrlab/rng"},
		"log":             {"krrlab/rng/a.go", manual + "package p\n\nimport _ \"log\"\n", "import of log in krrlab/rng"},
		"println":         {"krrlab/rng/a.go", manual + "package p\n\nfunc f() { println() }\n", "the built-in println"},
		"exit":            {"krrlab/cli/a.go", manual + "package p\n\nimport \"os\"\n\nfunc f() { os.Exit(1) }\n", "krrlab/cli/a.go:6: os.Exit exits in krrlab/cli"},
		"env":             {"experiments/a.go", manual + "package p\n\nimport \"os\"\n\nvar e = os.Getenv(\"E\")\n", "os.Getenv reads the environment in experiments"},
		"env of its own":  {"datasets/a.go", manual + "package p\n\nimport \"os\"\n\nvar e, f = os.Getenv(\"E\"), os.Args\n", "os.Args reads the command line in datasets"},
		"fatal":           {"krrlab/cli/a.go", manual + "package p\n\nimport \"log\"\n\nfunc f() { log.Fatal() }\n", "log.Fatal exits"},
		"use":             {"krrlab/cli/a.go", manual + "package p\n\nimport \"m/krrlab/accel\"\n\nfunc f() { accel.Use(nil) }\n", "accel.Use in krrlab/cli"},
		"command":         {"krrlab/cmd/krrlab/a.go", "// Command k.\npackage main\n\nimport \"os\"\n\nfunc main() { os.Exit(0) }\n", ""},
		"no manual":       {"krrlab/rng/a.go", "package p\n", "krrlab/rng/a.go:1: package krrlab/rng has a comment of 0 sentences"},
		"short manual":    {"krrlab/rng/a.go", "// Package p is v1.2 here. It is short.\npackage p\n", "comment of 2 sentences"},
		"function":        {"krrlab/rng/a.go", manual + "package p\n\nfunc F() {}\n", "krrlab/rng/a.go:4: exported function F has no comment"},
		"method":          {"krrlab/rng/a.go", manual + "package p\n\n// T is a type.\ntype T[E any] struct{}\n\nfunc (t *T[E]) M() {}\n", "exported method T.M"},
		"String":          {"krrlab/rng/a.go", manual + "package p\n\n// T is a type.\ntype T struct{}\n\nfunc (T) String() string { return \"\" }\n", ""},
		"hidden type":     {"krrlab/rng/a.go", manual + "package p\n\ntype t struct{}\n\nfunc (t) M() {}\n", ""},
		"type":            {"krrlab/rng/a.go", manual + "package p\n\ntype T struct{}\n", "exported type T"},
		"constant":        {"krrlab/rng/a.go", manual + "package p\n\nconst C = 1\n", "exported constant C"},
		"constants":       {"krrlab/rng/a.go", manual + "package p\n\n// These are two.\nconst (\n\tC = 1\n\tD = 2\n)\n", ""},
		"enumeration":     {"krrlab/rng/a.go", manual + "package p\n\nconst (\n\tC = iota // one\n\tD\n)\n", ""},
		"enumeration end": {"krrlab/rng/a.go", manual + "package p\n\nconst (\n\tC = iota // one\n\tD = 5\n)\n", "krrlab/rng/a.go:6: exported constant D"},
		"line comment":    {"krrlab/rng/a.go", manual + "package p\n\nconst C = 1 // one\n", ""},
		"unformatted":     {"krrlab/rng/a_test.go", "package p\n\nvar  x int\n", "krrlab/rng/a_test.go:3: is not formatted; run gofmt -w krrlab/rng/a_test.go"},
		"broken":          {"krrlab/rng/a.go", "package p\n\nvar = 1\n", "krrlab/rng/a.go:1: does not parse"},
		"unfinished":      {"krrlab/rng/a_test.go", "package p\n\n// " + mark + ": more\n", "krrlab/rng/a_test.go:3: " + mark},
		"unfinished doc":  {"docs/a.md", "text\n" + mark + "\n", "docs/a.md:2: " + mark},
		"testdata":        {"krrlab/rng/testdata/a.go", "package  p // " + mark + "\n", ""},
		"hidden folder":   {".x/a.go", "package  p\n", ""},
		"test may print":  {"krrlab/rng/a_test.go", "package p\n\nimport \"fmt\"\n\nfunc F() { fmt.Println() }\n", ""},
	} {
		var got []string
		for _, v := range Check(tree(t, map[string]string{c.file: c.src})) {
			got = append(got, v.String())
		}
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s: %q, want none", name, got)
		case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want) || strings.Contains(got[0], "\n")):
			t.Errorf("%s: %q, want one line with %q", name, got, c.want)
		}
	}
}

// TestRulesAreChecked makes sure that Check calls every rule.
func TestRulesAreChecked(t *testing.T) {
	var called []string
	for name, rule := range rules {
		rules[name] = func(t *Tree, p *Package) []Violation { called = append(called, name); return rule(t, p) }
		defer func() { rules[name] = rule }()
	}
	Check(tree(t, map[string]string{"krrlab/rng/a.go": manual + "package p\n"}))
	slices.Sort(called)
	if len(called) != len(rules) || len(slices.Compact(called)) != len(rules) {
		t.Errorf("called %v of %d rules", called, len(rules))
	}
}

func TestNoModule(t *testing.T) {
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder without go.mod was loaded")
	}
}
