package bindgen

import (
	"go/types"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestClosure checks that each package of another module whose types occur in the exported declarations of a bound
// package is bound, too. A cell that imports an unbound package gets an interpreted copy of it, whose types differ from
// the compiled types of the same names.
func TestClosure(t *testing.T) {
	bound := map[string]bool{}
	ps := testkit.Must(loadBound(".", packages.LoadTypes))
	for _, p := range ps {
		bound[p.Path] = true
	}
	for _, p := range ps {
		for path, user := range referencedPackages(p.Types) {
			first, _, _ := strings.Cut(path, "/")
			isImportable := !slices.Contains(strings.Split(path, "/"), "internal")
			if strings.Contains(first, ".") && isImportable && !bound[path] {
				t.Errorf("%s.%s has a type of %s: add this package to Patterns", p.Path, user, path)
			}
		}
	}
}

// referencedPackages returns the paths of the packages whose named types occur in the exported declarations of p, each
// with the name of such a declaration.
func referencedPackages(p *types.Package) map[string]string {
	out, visited := map[string]string{}, map[types.Type]bool{}
	var visit func(user string, t types.Type)
	visitMethods := func(user string, methods int, method func(int) *types.Func) {
		for i := range methods {
			if m := method(i); m.Exported() {
				visit(user, m.Type())
			}
		}
	}
	visit = func(user string, t types.Type) {
		if visited[t] {
			return
		}
		visited[t] = true
		switch t := t.(type) {
		case *types.Alias:
			visit(user, types.Unalias(t))
		case *types.Named:
			if q := t.Obj().Pkg(); q != nil && q != p {
				out[q.Path()] = user
				return
			}
			visit(user, t.Underlying())
			visitMethods(user, t.NumMethods(), t.Method)
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					visit(user, f.Type())
				}
			}
		case *types.Interface:
			visitMethods(user, t.NumMethods(), t.Method)
		case *types.Signature:
			visit(user, t.Params())
			visit(user, t.Results())
		case *types.Tuple:
			for v := range t.Variables() {
				visit(user, v.Type())
			}
		case *types.Map:
			visit(user, t.Key())
			visit(user, t.Elem())
		case interface{ Elem() types.Type }: // a pointer, slice, array or channel
			visit(user, t.Elem())
		}
	}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			visit(name, o.Type())
		}
	}
	return out
}
