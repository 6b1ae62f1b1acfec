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

// unusedExports lists exported names that no other package uses, with the reason why they are exported. An entry
// FOLDER.* or TYPE.* stands for all exported names of a folder or type.
var unusedExports = map[string]string{
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

	"krrlab/precond/feature.Map32":              "an optional method of user-defined maps",
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
	used, interfaceMethods := usedNames(allUnits)
	for selection := range selectedNames(t) {
		used[selection] = true
	}
	for _, name := range customaryCalls {
		interfaceMethods[name] = true
	}
	matched := map[string]bool{}
	for _, u := range allUnits {
		if u.test || u.path == bindings || u.pkg.Name() == "main" {
			continue
		}
		addContainedTypes(u.pkg, used)
		addRegisteredTypes(u, used)
		blocks := constBlocks(u, used)
		for object := range exported(u.pkg) {
			name := qualifiedName(object)
			_, isFunc := object.(*types.Func)
			isMethod := isFunc && object.Parent() == nil
			ownerEntry, folderEntry := name[:strings.LastIndex(name, ".")]+".*", u.path+".*"
			isError := types.NewMethodSet(types.NewPointer(object.Type())).Lookup(nil, "Error") != nil
			switch {
			case used[name] || used["."+object.Name()] || blocks[name] || isError ||
				strings.HasPrefix(object.Name(), "Err") || isMethod && interfaceMethods[object.Name()]:
			case unusedExports[name] != "" || unusedExports[ownerEntry] != "" || unusedExports[folderEntry] != "":
				matched[name], matched[ownerEntry], matched[folderEntry] = true, true, true
			default:
				t.Errorf("%s: nothing uses %s but its own package: remove it, unexport it, or give it a user",
					fset.Position(object.Pos()), name)
			}
		}
	}
	for name := range unusedExports {
		if !matched[name] {
			t.Errorf("%s is gone or has a user: remove it from unusedExports", name)
		}
	}
}

// bindings is the generated package that exports names to the notebook; its uses do not count.
const bindings = "krrlab/notebook/bindings"

// usedNames returns the qualified names of objects that a package uses and another package declares, and the names of
// the methods of all interfaces.
func usedNames(allUnits []*unit) (used, interfaceMethods map[string]bool) {
	used, interfaceMethods = map[string]bool{}, map[string]bool{}
	for _, u := range allUnits {
		if u.path == bindings {
			continue
		}
		ownPath := strings.TrimSuffix(u.pkg.Path(), "_test")
		for _, object := range u.info.Uses {
			if object.Pkg() != nil && object.Pkg().Path() != ownPath && object.Pkg() != u.pkg {
				used[qualifiedName(object)] = true
			}
		}
		for _, pkg := range append(u.pkg.Imports(), u.pkg) {
			for _, name := range pkg.Scope().Names() {
				if iface, ok := pkg.Scope().Lookup(name).Type().Underlying().(*types.Interface); ok {
					for method := range iface.Methods() {
						interfaceMethods[method.Name()] = true
					}
				}
			}
		}
	}
	return used, interfaceMethods
}

// exported yields the exported objects of a package and the exported methods of its exported types.
func exported(pkg *types.Package) iter.Seq[types.Object] {
	return func(yield func(types.Object) bool) {
		for _, name := range pkg.Scope().Names() {
			object := pkg.Scope().Lookup(name)
			if !object.Exported() {
				continue
			}
			if !yield(object) {
				return
			}
			typeName, isType := object.(*types.TypeName)
			if named, ok := object.Type().(*types.Named); ok && isType && !typeName.IsAlias() {
				for method := range named.Methods() {
					if method.Exported() && !yield(method) {
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
	blockUsed := map[string]bool{}
	for _, file := range u.files {
		for _, decl := range file.Decls {
			block, ok := decl.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			var names []string
			isUsed := false
			for _, spec := range block.Specs {
				for _, ident := range spec.(*ast.ValueSpec).Names {
					constant := u.info.Defs[ident]
					names = append(names, qualifiedName(constant))
					typ, ok := constant.Type().(*types.Named)
					isUsed = isUsed || used[qualifiedName(constant)] || used["."+ident.Name] || ok &&
						typ.Obj().Pkg() == u.pkg &&
						used[qualifiedName(typ.Obj())]
				}
			}
			for _, name := range names {
				blockUsed[name] = isUsed
			}
		}
	}
	return blockUsed
}

// addRegisteredTypes adds the types that the init functions of a package use, such as those of kernels and of kinds of
// preconditioners, which users find by the names that they are registered with.
func addRegisteredTypes(u *unit, used map[string]bool) {
	for _, file := range u.files {
		for _, decl := range file.Decls {
			if function, ok := decl.(*ast.FuncDecl); ok && function.Recv == nil && function.Name.Name == "init" {
				ast.Inspect(function, func(n ast.Node) bool {
					if ident, ok := n.(*ast.Ident); ok {
						if typ, ok := u.info.Uses[ident].(*types.TypeName); ok && typ.Pkg() == u.pkg {
							used[qualifiedName(typ)] = true
						}
					}
					return true
				})
			}
		}
	}
}

// addContainedTypes adds the named types that the exported declarations of a package contain.
func addContainedTypes(pkg *types.Package, used map[string]bool) {
	for object := range exported(pkg) {
		if typeName, ok := object.(*types.TypeName); ok && !typeName.IsAlias() {
			addNamedTypes(object.Type().Underlying(), used)
		} else {
			addNamedTypes(object.Type(), used)
		}
	}
}

// addNamedTypes adds the named types that a type contains.
func addNamedTypes(t types.Type, used map[string]bool) {
	switch t := t.(type) {
	case *types.Named:
		used[qualifiedName(t.Obj())] = true
		for a := range t.TypeArgs().Types() {
			addNamedTypes(a, used)
		}
	case *types.Alias:
		used[qualifiedName(t.Obj())] = true
	case interface{ Elem() types.Type }:
		addNamedTypes(t.Elem(), used)
		if m, ok := t.(*types.Map); ok {
			addNamedTypes(m.Key(), used)
		}
	case *types.Signature:
		addNamedTypes(t.Params(), used)
		addNamedTypes(t.Results(), used)
	case *types.Tuple:
		for v := range t.Variables() {
			addNamedTypes(v.Type(), used)
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				addNamedTypes(f.Type(), used)
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			addNamedTypes(m.Signature(), used)
		}
	}
}

var selector = regexp.MustCompile(`\.[A-Z]\w*`)

// selectedNames returns the names that follow a dot in notebooks and pages, each with its dot, such as ".Solve".
func selectedNames(t *testing.T) map[string]bool {
	names := map[string]bool{}
	books := testkit.Must(filepath.Glob(filepath.Join(root, "notebooks", "*.ipynb")))
	for _, file := range append(books, pages(t)...) {
		if filepath.Base(file) != "CHANGELOG.md" {
			for _, selection := range selector.FindAllString(readText(t, file), -1) {
				names[selection] = true
			}
		}
	}
	return names
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
		for _, file := range u.files {
			for _, decl := range file.Decls {
				if function, ok := decl.(*ast.FuncDecl); ok && u.test && function.Recv == nil &&
					strings.HasPrefix(function.Name.Name, "Example") {
					delete(missing, u.path)
				}
			}
		}
	}
	for path := range missing {
		t.Errorf("package %s has no Example: show in %s/example_test.go what it is for", path, path)
	}
}
