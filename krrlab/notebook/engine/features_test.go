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

// TestMissingFeatures hides each private field of ixgo in turn, and all of them together. The kernel must report the
// missing features, and cells that do not need them must run as usual.
func TestMissingFeatures(t *testing.T) {
	if lines := MissingFeatures(); lines != nil {
		t.Fatalf("missing features: %q", lines)
	}
	var allFields []*field
	for _, feat := range features {
		for _, privateField := range feat.fields {
			if !slices.Contains(allFields, privateField) {
				allFields = append(allFields, privateField)
			}
		}
	}
	missingSets := [][]*field{allFields}
	for _, privateField := range allFields {
		missingSets = append(missingSets, []*field{privateField})
	}
	for _, missing := range missingSets {
		t.Run(missing[0].path, func(t *testing.T) {
			for _, privateField := range missing {
				privateField.exists = false
				defer func() { privateField.exists = true }()
			}
			for _, feat := range features {
				reported := slices.ContainsFunc(MissingFeatures(),
					func(line string) bool {
						return strings.HasPrefix(line, "this kernel lacks "+feat.name+": "+feat.fallback)
					})
				lacks := slices.ContainsFunc(missing,
					func(privateField *field) bool { return slices.Contains(feat.fields, privateField) })
				if reported != lacks {
					t.Errorf("%s: said %v, want %v", feat.name, reported, lacks)
				}
			}
			for _, cell := range featureCells {
				want := cell.with
				if slices.ContainsFunc(cell.needs, func(feat *feature) bool { return !feat.available() }) {
					want = cell.without
				}
				e, run := openEngine(t)
				if cell.needs[0] == panicFeature {
					go func() { <-e.Panics }()
				}
				got := ""
				for _, code := range cell.code {
					got = run(code)
				}
				if !strings.Contains(got, want) {
					t.Errorf("%s\n got %q\nwant %q", strings.Join(cell.code, "\n"), got, want)
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
	iterations := 0
	isOver := func() bool { iterations++; StopGoroutine(GoroutineID()); return iterations > 3 }
	e.Declare(map[string]any{"over": &isOver})
	got := run("for !over() { }\n\"end\"")
	ResumeGoroutine(GoroutineID())
	canStop := stopFeature.available()
	if want := "stopped"; canStop && !strings.Contains(got, want) || !canStop && got != "→end" {
		t.Errorf("with stopFeature %v: %q", canStop, got)
	}
}
