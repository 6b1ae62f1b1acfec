package bindings

import (
	"sort"
	"strings"
	"testing"

	"github.com/gopherdata/gophernotes/imports"
)

// TestDocumented counts the comments of what is bound: every function, variable,
// constant and type, and every method and field of the types.
func TestDocumented(t *testing.T) {
	names, documented, packages := 0, 0, 0
	var missing []string
	for path, p := range imports.Packages {
		d := Docs(path)
		if d == nil {
			continue
		}
		packages++
		for name := range p.Binds {
			if _, ok := d[name]; !ok {
				t.Errorf("%s.%s is bound, but has no entry", path, name)
			}
		}
		for name := range p.Types {
			if _, ok := d[name]; !ok {
				t.Errorf("%s.%s is bound, but has no entry", path, name)
			}
		}
		for name, e := range d {
			if strings.Contains(name, ".") || name == "" {
				continue
			}
			names++
			if e.Decl == "" {
				t.Errorf("%s.%s has no declaration", path, name)
			}
			if e.Doc != "" {
				documented++
			} else {
				missing = append(missing, path+"."+name)
			}
		}
	}
	sort.Strings(missing)
	if names == 0 || packages < 25 {
		t.Fatalf("%d names of %d packages", names, packages)
	}
	share := float64(documented) / float64(names)
	t.Logf("%d of %d names in %d packages have a comment: %.1f %%", documented, names, packages, 100*share)
	if share < 0.95 {
		t.Errorf("less than 95 %%; without: %s", strings.Join(missing, ", "))
	}
}

// TestLookup reads entries of each kind.
func TestLookup(t *testing.T) {
	for _, c := range []struct{ path, name, decl, doc string }{
		{"github.com/krrlab/lab/krrlab", "New", "func New(train *", "New checks the data"},
		{"github.com/krrlab/lab/krrlab", "Lab.Solve", "func (*Lab).Solve(ctx context.Context)", "Solve"},
		{"github.com/krrlab/lab/krrlab", "Config.Lambda", "field Lambda float64", "ridge λ > 0"},
		{"gonum.org/v1/gonum/mat", "Dense.Mul", "func (*Dense).Mul(a Matrix, b Matrix)",
			"Mul takes the matrix product"},
		{"gonum.org/v1/gonum/mat", "", "package mat", "Package mat provides"},
	} {
		e, ok := Lookup(c.path, c.name)
		if !ok || !strings.HasPrefix(e.Decl, c.decl) || !strings.HasPrefix(e.Doc, c.doc) {
			t.Errorf("%s.%s: %q, %.60q", c.path, c.name, e.Decl, e.Doc)
		}
	}
	if _, ok := Lookup("gonum.org/v1/gonum/mat", "NoSuch"); ok {
		t.Error("a name that is not there was found")
	}
}
