package engine

import (
	"cmp"
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// resolveImports removes the import declarations from a file and adds the imported packages to visible. The exported
// objects of packages imported with a dot are also added to dotImported.
func (e *Engine) resolveImports(file *ast.File, visible namespace, dotImported map[string]types.Object) error {
	var missing MissingPackagesError
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		pkg, err := importer{e}.Import(path)
		if notFound := (*MissingPackagesError)(nil); errors.As(err, &notFound) {
			missing.Line = cmp.Or(missing.Line, e.fset.Position(spec.Pos()).Line)
			missing.Paths = append(missing.Paths, notFound.Paths...)
			continue
		}
		if err != nil {
			return types.Error{Fset: e.fset, Pos: spec.Pos(), Msg: err.Error()}
		}
		bindImport(pkg, spec.Name, visible, dotImported)
	}
	file.Imports, file.Decls = nil, slices.DeleteFunc(file.Decls, func(d ast.Decl) bool {
		decl, ok := d.(*ast.GenDecl)
		return ok && decl.Tok == token.IMPORT
	})
	if missing.Paths != nil {
		return &missing
	}
	return nil
}

// bindImport adds an imported package to visible. name is the name in the import declaration, or nil. The exported
// objects of a package that is imported with a dot are also added to dotImported.
func bindImport(pkg *types.Package, name *ast.Ident, visible namespace, dotImported map[string]types.Object) {
	packageName := pkg.Name()
	if name != nil {
		packageName = name.Name
	}
	switch packageName {
	case "_":
	case ".":
		for _, objectName := range pkg.Scope().Names() {
			if token.IsExported(objectName) {
				dotImported[objectName] = pkg.Scope().Lookup(objectName)
				visible.bind(objectName, dotImported[objectName])
			}
		}
	default:
		delete(visible.names, packageName)
		visible.imports[packageName] = ImportPath(pkg)
	}
}

// MissingPackagesError reports imported packages that are neither compiled into the program nor available as source.
type MissingPackagesError struct {
	Paths []string
	Line  int // line of the first such import
}

func (m *MissingPackagesError) Error() string {
	return "not in this kernel: " + strings.Join(m.Paths, ", ")
}

// addImplicitImports adds to visible the packages that a file uses without importing them. Their paths come from
// ImplicitImport.
func (e *Engine) addImplicitImports(file *ast.File, visible namespace) {
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if ok && visible.names[id.Name] == nil && visible.imports[id.Name] == "" && e.ImplicitImport != nil {
			if path := e.ImplicitImport(id.Name); path != "" {
				visible.imports[id.Name] = path
			}
		}
		return true
	})
}
