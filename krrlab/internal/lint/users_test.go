package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// kept lists exported names that no other package uses, with the reason why they are exported. An entry FOLDER.* or
// TYPE.* stands for all exported names of a folder or type.
var kept = map[string]string{
	"krrlab/notebook/display.*":   "gophernotes' names, called in cells",
	"experiments/baseline.Loss.*": "the formulas of the manual",

	"experiments/testbed.Preconditioners": "readers of testbed lines look up their names",
	"experiments/testbed.Problems":        "readers of testbed lines look up their names",

	"krrlab.DirectBelow": "a default that is documented",

	"krrlab/precond/vecchia.Inverse.Description": "an optional method of M that stages call",
	"krrlab/precond/recipe.Features.CheckKernel": "an optional method that stage.Kind.CheckKernel calls",

	"experiments.Report.*": "a notebook shows them",

	"krrlab/stage/solve.ResidualInStored":   "a value of Solution.ResidualKind",
	"krrlab/stage/solve.ResidualInFloat64":  "a value of Solution.ResidualKind",
	"krrlab/stage/solve.ResidualInStored64": "a value of Solution.ResidualKind",
	"krrlab/stage/solve.ResidualRecursive":  "a value of Solution.ResidualKind",

	"krrlab/precond/feature.Map32":              "a user-defined map's way to float32",
	"krrlab/precond/feature.FourierMap":         "W and b of a sampled map",
	"krrlab/krylov/pcg.Bounded":                 "for operators that know their rounding",
	"krrlab/precond/sketch.CountSketchOperator": "what Sample returns",
	"krrlab/precond/sketch.GaussianOperator":    "what Sample returns",
	"krrlab/precond/feature.TensorSketchMap":    "what Sample returns",
	"krrlab/precond/sketch.SRHTOperator":        "what Sample returns",
	"krrlab/notebook/golang.Session.Progress":   "bound in cells",
	"krrlab/notebook/native.Serve":              "compiled programs call it",
}

// customaryCalls are the methods that packages of the standard library call through interfaces of their own.
var customaryCalls = []string{"Error", "String", "Unwrap", "Is", "As", "MarshalText", "UnmarshalText", "MarshalJSON",
	"UnmarshalJSON"}

// TestUsers checks that every exported name has a user: another package, a test of another package, a notebook or a
// documentation page. A type also has a user if an exported declaration contains it, a constant if another constant of
// its block or its type has one, and a method if some interface has a method of its name. A type whose value an init
// function of its package registers is found by its name. Errors are exempt, since users find them with errors.As and
// errors.Is.
func TestUsers(t *testing.T) {
	allUnits := checkedUnits(t)
	used, calls := usedNames(allUnits)
	for selection := range selectedNames(t) {
		used[selection] = true
	}
	for _, n := range customaryCalls {
		calls[n] = true
	}
	unused := map[string]bool{}
	for _, u := range allUnits {
		if u.test || u.path == bindings || u.pkg.Name() == "main" {
			continue
		}
		addContainedTypes(u.pkg, used)
		addRegisteredTypes(u, used)
		blocks := constBlocks(u, used)
		for object := range exported(u.pkg) {
			n := qualifiedName(object)
			_, method := object.(*types.Func)
			method = method && object.Parent() == nil
			isError := types.NewMethodSet(types.NewPointer(object.Type())).Lookup(nil, "Error") != nil
			switch {
			case used[n] || used["."+object.Name()] || blocks[n] || isError || strings.HasPrefix(object.Name(), "Err") ||
				method && calls[object.Name()]:
			case kept[n] != "" || kept[n[:strings.LastIndex(n, ".")]+".*"] != "" || kept[u.path+".*"] != "":
				unused[n], unused[n[:strings.LastIndex(n, ".")]+".*"], unused[u.path+".*"] = true, true, true
			default:
				t.Errorf("%s: nothing uses %s but its own package: remove it, unexport it, or give it a user",
					fset.Position(object.Pos()), n)
			}
		}
	}
	for n := range kept {
		if !unused[n] {
			t.Errorf("%s is gone or has a user: strike it out of kept", n)
		}
	}
}

// bindings is the generated package that exports names to the notebook; its uses do not count.
const bindings = "krrlab/notebook/bindings"

// usedNames returns the names that packages use of other packages, and the names of the methods of all interfaces.
func usedNames(us []*unit) (used, calls map[string]bool) {
	used, calls = map[string]bool{}, map[string]bool{}
	for _, u := range us {
		if u.path == bindings {
			continue
		}
		ownPath := strings.TrimSuffix(u.pkg.Path(), "_test")
		for _, o := range u.info.Uses {
			if o.Pkg() != nil && o.Pkg().Path() != ownPath && o.Pkg() != u.pkg {
				used[qualifiedName(o)] = true
			}
		}
		for _, p := range append(u.pkg.Imports(), u.pkg) {
			for _, n := range p.Scope().Names() {
				if i, ok := p.Scope().Lookup(n).Type().Underlying().(*types.Interface); ok {
					for m := range i.Methods() {
						calls[m.Name()] = true
					}
				}
			}
		}
	}
	return used, calls
}

// exported yields the exported objects of a package and the exported methods of its exported types.
func exported(pkg *types.Package) iter.Seq[types.Object] {
	return func(yield func(types.Object) bool) {
		for _, n := range pkg.Scope().Names() {
			object := pkg.Scope().Lookup(n)
			if !object.Exported() {
				continue
			}
			if !yield(object) {
				return
			}
			typ, isType := object.(*types.TypeName)
			if named, ok := object.Type().(*types.Named); ok && isType && !typ.IsAlias() {
				for m := range named.Methods() {
					if m.Exported() && !yield(m) {
						return
					}
				}
			}
		}
	}
}

// constBlocks returns, for each constant of a package, whether its block has a constant that is used or whose type,
// declared in the package, is used.
func constBlocks(u *unit, used map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, f := range u.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			var names []string
			known := false
			for _, s := range g.Specs {
				for _, id := range s.(*ast.ValueSpec).Names {
					c := u.info.Defs[id]
					names = append(names, qualifiedName(c))
					typ, ok := c.Type().(*types.Named)
					known = known || used[qualifiedName(c)] || used["."+id.Name] || ok && typ.Obj().Pkg() == u.pkg &&
						used[qualifiedName(typ.Obj())]
				}
			}
			for _, n := range names {
				out[n] = known
			}
		}
	}
	return out
}

// addRegisteredTypes adds the types that the init functions of a package use, such as those of kernels and of kinds of
// preconditioners, which users find by the names that they are registered with.
func addRegisteredTypes(u *unit, out map[string]bool) {
	for _, f := range u.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				ast.Inspect(fn, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						if typ, ok := u.info.Uses[id].(*types.TypeName); ok && typ.Pkg() == u.pkg {
							out[qualifiedName(typ)] = true
						}
					}
					return true
				})
			}
		}
	}
}

// addContainedTypes adds the named types that the exported declarations of a package contain.
func addContainedTypes(pkg *types.Package, out map[string]bool) {
	for o := range exported(pkg) {
		if typ, ok := o.(*types.TypeName); ok && !typ.IsAlias() {
			addNamedTypes(o.Type().Underlying(), out)
		} else {
			addNamedTypes(o.Type(), out)
		}
	}
}

// addNamedTypes adds the named types that a type contains.
func addNamedTypes(t types.Type, out map[string]bool) {
	switch t := t.(type) {
	case *types.Named:
		out[qualifiedName(t.Obj())] = true
		for a := range t.TypeArgs().Types() {
			addNamedTypes(a, out)
		}
	case *types.Alias:
		out[qualifiedName(t.Obj())] = true
	case interface{ Elem() types.Type }:
		addNamedTypes(t.Elem(), out)
		if m, ok := t.(*types.Map); ok {
			addNamedTypes(m.Key(), out)
		}
	case *types.Signature:
		addNamedTypes(t.Params(), out)
		addNamedTypes(t.Results(), out)
	case *types.Tuple:
		for v := range t.Variables() {
			addNamedTypes(v.Type(), out)
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				addNamedTypes(f.Type(), out)
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			addNamedTypes(m.Signature(), out)
		}
	}
}

var selector = regexp.MustCompile(`\.[A-Z]\w*`)

// selectedNames returns the names that follow a dot in notebooks and pages, each with its dot, such as ".Solve".
func selectedNames(t *testing.T) map[string]bool {
	out := map[string]bool{}
	books := testkit.Must(filepath.Glob(filepath.Join(root, "notebooks", "*.ipynb")))
	for _, n := range append(books, pages(t)...) {
		if filepath.Base(n) != "CHANGELOG.md" {
			for _, w := range selector.FindAllString(readText(t, n), -1) {
				out[w] = true
			}
		}
	}
	return out
}

// TestExamples checks that each package that other modules may import has an Example.
func TestExamples(t *testing.T) {
	missing := map[string]bool{}
	for _, u := range checkedUnits(t) {
		if !u.test && u.pkg.Name() != "main" && !strings.Contains(u.path, "internal/") {
			for range exported(u.pkg) {
				missing[u.path] = true
			}
		}
		for _, f := range u.files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && u.test && fn.Recv == nil &&
					strings.HasPrefix(fn.Name.Name, "Example") {
					delete(missing, u.path)
				}
			}
		}
	}
	for p := range missing {
		t.Errorf("package %s has no Example: show in %s/example_test.go what it is for", p, p)
	}
}
