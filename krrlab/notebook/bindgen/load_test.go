package bindgen

import (
	"fmt"
	"go/ast"
	"go/constant"
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
	if p.As != "" {
		return p.As
	}
	return p.Path
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

// exact writes an untyped constant as the interpreter reads it: the kind and the value,
// a fraction where it is not whole.
func exact(b *types.Basic, v constant.Value) string {
	switch b.Kind() {
	case types.UntypedBool:
		return fmt.Sprintf("bool:%t", constant.BoolVal(v))
	case types.UntypedInt:
		return "int:" + v.ExactString()
	case types.UntypedRune:
		return "rune:" + v.ExactString()
	case types.UntypedFloat:
		return "float:" + v.ExactString()
	case types.UntypedComplex:
		return "complex:" + constant.Real(v).ExactString() + ":" + constant.Imag(v).ExactString()
	}
	return "string:" + constant.StringVal(v)
}

// standIn is a Go expression of the default type of an untyped constant.
func standIn(b *types.Basic) string {
	switch b.Kind() {
	case types.UntypedBool:
		return "false"
	case types.UntypedRune:
		return "'0'"
	case types.UntypedFloat:
		return "0.0"
	case types.UntypedComplex:
		return "0i"
	case types.UntypedString:
		return `""`
	}
	return "0"
}

// writable reports whether the types of a method can be written in another package.
func writable(t types.Type) error {
	switch t := t.(type) {
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for i := range tuple.Len() {
				if err := writable(tuple.At(i).Type()); err != nil {
					return err
				}
			}
		}
	case interface{ Obj() *types.TypeName }: // Named, Alias
		if o := t.Obj(); o.Pkg() != nil && !o.Exported() {
			return fmt.Errorf("its type %s is not exported", o.Name())
		}
	case *types.Map:
		if err := writable(t.Key()); err != nil {
			return err
		}
		return writable(t.Elem())
	case interface{ Elem() types.Type }: // Pointer, Slice, Array, Chan
		return writable(t.Elem())
	}
	return nil
}
