package native

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestCompile checks the files that Compile gives to the go command for a cell, and the error that it returns for the
// messages of the go command. Types with an Eval method for pairs of points get an EvalTile method.
func TestCompile(t *testing.T) {
	const eval = "func (k K) Eval(x, z []float64) float64 { return 1 }"
	// wantError is the start of the error, and wantGenerated a part of the generated file.
	for _, test := range []struct{ code, buildMessage, wantError, wantGenerated string }{
		{"var _ = math.E", "", "", `package cell; import math "math"`},
		{"import \"math/rand\"\n\nvar _ = rand.Int63() + int64(math.E)", "", "", `package cell; import math "math"`},
		{"import \"math/rand/v2\"\n\nvar _ = rand.Int64()", "", "", "package cell\n"},
		{"\nimport \"no/such\"", "cell/Cell 5:3: package no/such is not in std",
			"package no/such is not in std (Cell 5, line 3)", ""},
		{"\nimport \"ex.org/a\"", "ex.org/a: not in the module cache",
			"ex.org/a: not in the module cache (Cell 5, line 3)", ""},
		{"func F() {}", "# notebook/cell; Cell 5:2:1: one; Cell 5:3:1: two", "one (Cell 5, line 2)", ""},
		{"func F() {}", "no space left", "no space left", ""},
		{"func F[T any]() {}", "", "F is generic", ""},
		{"type t[T any] struct{}\n\nfunc (*t[T]) Len() {}", "no more", "no more", ""},
		{"type K struct{}\n\n" + eval, "", "", "func (k K) EvalTile("},
		{"type K int\n\nfunc (K) Eval(a []float64, β []float64) float64 { return 1 }", "", "", "func (k K) EvalTile("},
		{"type K struct{}\n\n" + eval + "\nfunc (K) EvalTile(dst, x, z []float64, nx, nz int) {}", "", "",
			"func (K) EvalTile("},
		{"type K struct{}\n\nfunc (k K) Eval(x []float64) float64 { return 1 }", "", "", ""},
	} {
		var cell string
		_, err := Compile(t.Context(), func(_ context.Context, files map[string]string, _ []string) (string, error) {
			cell = files["cell/cell.go"]
			return "", errors.New(test.buildMessage)
		},
			Source{Name: "Cell 5", Code: test.code,
				ImplicitImport: func(name string) string { return map[string]string{"math": "math"}[name] }})
		wantTiles := 0
		if strings.Contains(test.wantGenerated, "EvalTile") {
			wantTiles = 1
		}
		if !strings.HasPrefix(err.Error(), test.wantError) || !strings.Contains(cell, test.wantGenerated) ||
			strings.Count(cell, "EvalTile(") != wantTiles {
			t.Errorf("%s\n got %v of\n%s\nwant %s", test.code, err, cell, test.wantError)
		}
	}
}
