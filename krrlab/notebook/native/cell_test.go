package native

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestCompile: what the go command is given for a cell, and the lines of what it says.
func TestCompile(t *testing.T) {
	const eval = "func (k K) Eval(x, z []float64) float64 { return 1 }"
	for _, c := range []struct{ code, says, want, given string }{
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
			return "", errors.New(c.says)
		},
			Source{Name: "Cell 5", Code: c.code,
				ImplicitImport: func(name string) string { return map[string]string{"math": "math"}[name] }})
		n := 0
		if strings.Contains(c.given, "EvalTile") {
			n = 1
		}
		if !strings.HasPrefix(err.Error(), c.want) || !strings.Contains(cell, c.given) ||
			strings.Count(cell, "EvalTile(") != n {
			t.Errorf("%s\n got %v of\n%s\nwant %s", c.code, err, cell, c.want)
		}
	}
}
