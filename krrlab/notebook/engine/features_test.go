package engine

import (
	"slices"
	"strings"
	"testing"
)

// featureCells lists cells whose results depend on features of the interpreter, with the expected results with and
// without these features.
var featureCells = []struct {
	needs         []*feature
	code          []string
	with, without string // expected results if all features in needs are available, and if one is missing
}{
	{[]*feature{phiFeature}, []string{"a, b := 1, 2\nfor range 3 { a, b = b, a }", "a, b"}, "→2→1", "→2→1"},
	{[]*feature{resultFeature}, []string{"func two() (int, int) { return 1, 2 }",
		"x, y := 0, 0\nfor range 200 { x, y = two() }\nx, y"},
		"→1→2", "→1→2"},
	{[]*feature{invokeFeature, typeFeature},
		[]string{"type t struct{ n int }\nfunc (v t) String() string { return fmt.Sprint(\"t\", v.n) }", "t{1}"},
		"→t1", "undefined: t"},
	{[]*feature{redirectFeature}, []string{"func f() int { return 1 }\ng := func() int { return f() }",
		"func f() int { return 2 }", "f(), g()"},
		"→2→2", "→2→1"},
	{[]*feature{redirectFeature}, []string{"var x any\nm := map[string]any{}", "m[\"k\"] = x\nlen(m)"},
		"→1", "an interface that may be nil is stored in a map"},
	{[]*feature{panicFeature}, []string{"go func() { panic(\"p\") }()", "1"}, "→1", "→1"},
	{[]*feature{typeFeature}, []string{"type box[T any] struct{ v T }\nfunc mk[T any]() any { return box[T]{} }",
		"k := mk[int]()", "_, ok := k.(box[int])\nok"}, "→true", "✗"},
}

// TestMissingFeatures removes each private field in turn, and all of them together. The kernel must report the missing
// features, and cells that do not need them must run as usual.
func TestMissingFeatures(t *testing.T) {
	if lines := MissingFeatures(); lines != nil {
		t.Fatalf("missing features: %q", lines)
	}
	var allFields []*field
	for _, f := range features {
		for _, privateField := range f.fields {
			if !slices.Contains(allFields, privateField) {
				allFields = append(allFields, privateField)
			}
		}
	}
	sets := [][]*field{allFields}
	for _, privateField := range allFields {
		sets = append(sets, []*field{privateField})
	}
	for _, set := range sets {
		t.Run(set[0].path, func(t *testing.T) {
			for _, privateField := range set {
				privateField.exists = false
				defer func() { privateField.exists = true }()
			}
			for _, f := range features {
				reported := slices.ContainsFunc(MissingFeatures(),
					func(s string) bool { return strings.HasPrefix(s, "this kernel lacks "+f.name+": "+f.fallback) })
				if lacks := slices.ContainsFunc(set,
					func(privateField *field) bool { return slices.Contains(f.fields, privateField) }); reported != lacks {
					t.Errorf("%s: said %v, want %v", f.name, reported, lacks)
				}
			}
			for _, c := range featureCells {
				want := c.with
				if slices.ContainsFunc(c.needs, func(f *feature) bool { return !f.available() }) {
					want = c.without
				}
				e, run := openEngine(t)
				if c.needs[0] == panicFeature {
					go func() { <-e.Panics }()
				}
				got := ""
				for _, code := range c.code {
					got = run(code)
				}
				if !strings.Contains(got, want) {
					t.Errorf("%s\n got %q\nwant %q", strings.Join(c.code, "\n"), got, want)
				}
			}
			checkStop(t)
		})
	}
}

// checkStop checks that a loop that would end after a few iterations is stopped if the feature for this is available,
// and otherwise runs to its end.
func checkStop(t *testing.T) {
	e, run := openEngine(t)
	n := 0
	over := func() bool { n++; StopGoroutine(GoroutineID()); return n > 3 }
	e.Declare(map[string]any{"over": &over})
	got := run("for !over() { }\n\"end\"")
	ResumeGoroutine(GoroutineID())
	canStop := stopFeature.available()
	if want := "stopped"; canStop && !strings.Contains(got, want) || !canStop && got != "→end" {
		t.Errorf("stopping %v: %q", stopFeature.available(), got)
	}
}
