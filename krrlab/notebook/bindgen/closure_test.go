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
	pkgs := testkit.Must(loadBound(".", packages.LoadTypes))
	for _, pkg := range pkgs {
		bound[pkg.Path] = true
	}
	for _, pkg := range pkgs {
		for path, user := range referencedPackages(pkg.Types) {
			firstElement, _, _ := strings.Cut(path, "/")
			isImportable := !slices.Contains(strings.Split(path, "/"), "internal")
			if strings.Contains(firstElement, ".") && isImportable && !bound[path] {
				t.Errorf("%s.%s has a type of %s: add this package to Patterns", pkg.Path, user, path)
			}
		}
	}
}

// referencedPackages returns the paths of the packages whose named types occur in the exported declarations of pkg,
// each with the name of such a declaration.
func referencedPackages(pkg *types.Package) map[string]string {
	users, visited := map[string]string{}, map[types.Type]bool{}
	var visit func(user string, t types.Type)
	visitMethods := func(user string, methods int, method func(int) *types.Func) {
		for i := range methods {
			if method := method(i); method.Exported() {
				visit(user, method.Type())
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
			if typePkg := t.Obj().Pkg(); typePkg != nil && typePkg != pkg {
				users[typePkg.Path()] = user
				return
			}
			visit(user, t.Underlying())
			visitMethods(user, t.NumMethods(), t.Method)
		case *types.Struct:
			for field := range t.Fields() {
				if field.Exported() {
					visit(user, field.Type())
				}
			}
		case *types.Interface:
			visitMethods(user, t.NumMethods(), t.Method)
		case *types.Signature:
			visit(user, t.Params())
			visit(user, t.Results())
		case *types.Tuple:
			for variable := range t.Variables() {
				visit(user, variable.Type())
			}
		case *types.Map:
			visit(user, t.Key())
			visit(user, t.Elem())
		case interface{ Elem() types.Type }: // a pointer, slice, array or channel
			visit(user, t.Elem())
		}
	}
	for _, name := range pkg.Scope().Names() {
		if obj := pkg.Scope().Lookup(name); obj.Exported() {
			visit(name, obj.Type())
		}
	}
	return users
}
