package bindgen

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"runtime"
	"slices"
	"strings"

	"github.com/cosmos72/gomacro/imports"
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

// Paths returns the paths of the packages that the patterns name, whether they compile or
// not.
func Paths(dir string, patterns ...string) (paths []string, err error) {
	all, err := packages.Load(&packages.Config{Mode: packages.NeedName, Dir: dir}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("bindgen: %w", err)
	}
	for _, l := range all {
		paths = append(paths, l.PkgPath)
	}
	return paths, nil
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

// stdRelease is the release of Go whose standard library is bound, that of go.mod.
const stdRelease = "go1.26"

// Std are the packages of the standard library of which the interpreter, whose table is that of Go 1.18, gets
// the names that came later, and packages that did. None of them depends on the platform.
var Std = []string{
	"archive/tar", "archive/zip", "bufio", "bytes", "context", "crypto/rand", "crypto/subtle", "encoding", "encoding/base64",
	"encoding/binary", "encoding/csv", "encoding/hex", "encoding/json", "errors", "flag", "fmt", "go/ast", "go/types", "hash", "hash/crc32",
	"hash/fnv", "hash/maphash", "io", "io/fs", "log", "log/slog", "math", "math/big", "math/bits", "math/cmplx", "math/rand", "math/rand/v2",
	"net", "net/http", "net/http/httptest", "net/netip", "net/url", "os", "os/exec", "path", "path/filepath", "reflect", "regexp", "runtime",
	"runtime/debug", "sort", "strconv", "strings", "sync", "sync/atomic", "testing", "text/tabwriter", "text/template", "time", "unicode",
	"unicode/utf16", "unicode/utf8",
}

// StdFiles returns the files of the packages Std: in each what the interpreter's own table lacks and can carry, which
// no generics are. It returns nil under another release of Go, whose library is another.
func StdFiles(dir string) (map[string][]byte, error) {
	if v := runtime.Version(); v != stdRelease && !strings.HasPrefix(v, stdRelease+".") && !strings.HasPrefix(v, stdRelease+"-") {
		return nil, nil
	}
	ps, err := Load(dir, Std...)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, p := range ps {
		skip := Skip{}
		names := 0
		for _, o := range p.exported() {
			if has(p.Path, o.Name()) || carriable(p, o) != nil {
				skip[p.Path+"."+o.Name()] = "the interpreter has it, or cannot carry it"
				continue
			}
			names++
		}
		if names == 0 {
			continue
		}
		src, _, err := Source("bindings", p, skip)
		if err != nil {
			return nil, err
		}
		assign := fmt.Sprintf("imports.Packages[%q] = imports.Package{", p.Path)
		merge := fmt.Sprintf("merge(%q, imports.PackageUnderlying{", p.Path)
		src = bytes.Replace(src, []byte(assign), []byte(merge), 1)
		files["bind_std_"+Stem(p.Path)+".go"] = bytes.Replace(src, []byte("\n\t}\n}\n"), []byte("\n\t})\n}\n"), 1)
	}
	return files, nil
}

// has reports whether the interpreter's own table has a name.
func has(path, name string) bool {
	p, ok := imports.Packages[path]
	if !ok {
		return false
	}
	_, typ := p.Types[name]
	return typ || p.Binds[name].IsValid()
}

// carriable returns why the interpreter cannot carry a name.
func carriable(p *Package, o types.Object) error {
	w := &writer{pkg: p, imports: map[string]string{}, taken: map[string]bool{"r": true, "imports": true}}
	return w.object(o)
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
