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

// Package is one package to bind.
type Package struct {
	Path  string
	As    string // path by which cells import it; "" for Path
	Types *types.Package
	files []*ast.File
	fset  *token.FileSet
}

// Load returns the packages that the patterns name, in the order of their paths. The go
// command must be there; dir is a folder of the module.
func Load(dir string, patterns ...string) ([]*Package, error) {
	all, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: dir}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("bindgen: %w", err)
	}
	var out []*Package
	for _, l := range all {
		if len(l.Errors) > 0 {
			return nil, fmt.Errorf("bindgen: %s: %w", l.PkgPath, l.Errors[0])
		}
		out = append(out, &Package{Path: l.PkgPath, Types: l.Types, files: l.Syntax, fset: l.Fset})
	}
	slices.SortFunc(out, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// name returns the path by which cells import the package.
func (p *Package) name() string {
	return cmp.Or(p.As, p.Path)
}

// exported returns the exported objects of the package in the order of their names.
func (p *Package) exported() []types.Object {
	var out []types.Object
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		if o := scope.Lookup(name); o.Exported() {
			out = append(out, o)
		}
	}
	return out
}
