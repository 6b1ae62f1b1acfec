package bindgen

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Package is a package to be bound.
type Package struct {
	Path     string
	CellPath string // path by which cells import the package, if different from Path
	Types    *types.Package
	files    []*ast.File
	fset     *token.FileSet
}

// Load returns the packages that match the patterns, sorted by path. The mode packages.LoadTypes reads the types from
// the export data of the compiler, packages.LoadSyntax also parses the files. Load needs the go command; dir is a
// folder of the module.
func Load(dir string, mode packages.LoadMode, patterns ...string) ([]*Package, error) {
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: dir}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("bindgen: %w", err)
	}
	var pkgs []*Package
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			return nil, fmt.Errorf("bindgen: %s: %w", pkg.PkgPath, pkg.Errors[0])
		}
		pkgs = append(pkgs, &Package{Path: pkg.PkgPath, Types: pkg.Types, files: pkg.Syntax, fset: pkg.Fset})
	}
	slices.SortFunc(pkgs, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	return pkgs, nil
}

// importPath returns the path by which cells import the package.
func (p *Package) importPath() string {
	return cmp.Or(p.CellPath, p.Path)
}

// exportedObjects returns the exported objects of the package, sorted by name.
func (p *Package) exportedObjects() []types.Object {
	var objects []types.Object
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		if obj := scope.Lookup(name); obj.Exported() {
			objects = append(objects, obj)
		}
	}
	return objects
}
