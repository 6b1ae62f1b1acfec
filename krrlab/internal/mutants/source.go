package mutants

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// source is a package as it stands, parsed and typed.
type source struct {
	path  string // in the module
	dir   string
	names []string // base names of its files, tests excluded
	text  map[string][]byte
	fset  *token.FileSet
	files map[string]*ast.File
	info  *types.Info
	pkg   *types.Package
	conf  types.Config
}

// imported are the packages that a package imports.
type imported map[string]*packages.Package

func (i imported) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p.Types, nil
	}
	return nil, fmt.Errorf("mutants: %s is not imported", path)
}

// load reads one package of the module in the folder root.
func load(ctx context.Context, root, path string) (*source, error) {
	ps, err := packages.Load(&packages.Config{Context: ctx, Mode: packages.LoadSyntax, Dir: root}, "./"+path)
	if err != nil {
		return nil, err
	}
	p := ps[0]
	if len(p.Errors) > 0 {
		return nil, p.Errors[0]
	}
	s := &source{path: path, text: map[string][]byte{}, fset: p.Fset, files: map[string]*ast.File{}, info: p.TypesInfo, pkg: p.Types,
		conf: types.Config{Sizes: p.TypesSizes, Importer: imported(p.Imports)}}
	for i, file := range p.CompiledGoFiles {
		dir, name := filepath.Split(file)
		s.dir, s.names, s.files[name] = dir, append(s.names, name), p.Syntax[i]
		if s.text[name], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// sites returns every site of the package in the functions of files that want accepts, in
// the order of the source.
func (s *source) sites(want func(file string) bool) []*Site {
	var all []*Site
	count := map[string]int{}
	for _, name := range s.names {
		if !want(name) {
			continue
		}
		f := &finder{source: s, file: s.files[name], name: name, src: s.text[name]}
		for _, d := range f.file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				f.function(fn)
			}
		}
		for _, site := range f.found {
			site.nth = count[site.Key()]
			count[site.Key()]++
		}
		all = append(all, f.found...)
	}
	return all
}

// typeName writes the type of an expression as the file would; ok is false where it cannot.
func (s *source) typeName(file *ast.File, e ast.Expr) (name string, ok bool) {
	tv, known := s.info.Types[e]
	if !known || tv.Type == nil || !tv.IsValue() {
		return "", false
	}
	ok = true
	name = types.TypeString(types.Default(tv.Type), func(p *types.Package) string {
		if p == s.pkg {
			return ""
		}
		i := slices.IndexFunc(file.Imports, func(spec *ast.ImportSpec) bool { return strings.Trim(spec.Path.Value, `"`) == p.Path() })
		if i < 0 {
			ok = false
			return ""
		}
		if n := file.Imports[i].Name; n != nil {
			return n.Name
		}
		return p.Name()
	})
	return name, ok && !strings.Contains(name, "invalid")
}

func (s *source) isNumber(e ast.Expr) bool {
	switch t := s.info.Types[e].Type.(type) {
	case nil:
		return false
	case *types.TypeParam: // a constraint of numbers has no strings in it here
		return !strings.Contains(t.Constraint().Underlying().String(), "string")
	default:
		b, ok := t.Underlying().(*types.Basic)
		return ok && b.Info()&types.IsNumeric != 0
	}
}

// constant adds sites that change a number: a literal, or the use of a named constant of no type of its
// own.
func (f *finder) constant(n ast.Expr) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if n.Kind != token.INT && n.Kind != token.FLOAT {
			return
		}
	case *ast.Ident:
		c, ok := f.info.Uses[n].(*types.Const)
		if !ok || c.Pkg() == nil {
			return
		}
		if _, plain := c.Type().(*types.Basic); !plain {
			return
		}
	}
	tv := f.info.Types[n]
	if tv.Type == nil || tv.Value == nil {
		return
	}
	basic, ok := tv.Type.Underlying().(*types.Basic)
	text, zero := f.text(n), tv.Value.ExactString() == "0"
	switch {
	case !ok:
	case basic.Info()&types.IsFloat != 0 && zero:
		f.replace(n, "const", "1")
	case basic.Info()&types.IsFloat != 0:
		f.replace(n, "const", text+" * 1.1")
	case basic.Info()&types.IsInteger != 0:
		f.replace(n, "const", text+" + 1")
		if !zero {
			f.replace(n, "const", text+" - 1")
		}
	}
}

// supportName is the file that every copy has beside its own.
const supportName = "zz_mutants.go"

// support returns that file for a package with n mutants.
func support(pkg string, n int) string {
	return fmt.Sprintf(`package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantActive, _ = strconv.Atoi(os.Getenv(%q))
	mutantTrace     = os.Getenv(%q)
	mutantSeen      [%d]atomic.Bool
)

func mutantOn(id int) bool { return mutantActive == id || mutantTrace != "" && mutantReached(id) }

func mutantReached(id int) bool {
	if !mutantSeen[id].Swap(true) {
		if f, err := os.OpenFile(mutantTrace, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err == nil {
			_, _ = f.WriteString(strconv.Itoa(id) + "\n")
			_ = f.Close()
		}
	}
	return false
}
`, pkg, activeVariable, traceVariable, n+1)
}

// weave returns the files that hold the sites, mutant i+1 for site i, by name.
func (s *source) weave(sites []*Site) map[string][]byte {
	type numbered struct {
		edit
		rank, order int
	}
	byFile := map[string][]numbered{}
	for i, site := range sites {
		for _, e := range site.edits {
			e.text = strings.Replace(e.text, "mutantOn(%d)", fmt.Sprintf("mutantOn(%d)", i+1), 1)
			// At one place what closes comes first, then what opens, then a replacement. Of two that
			// close the inner one, which is found later, is closed first.
			n := numbered{e, 2, i}
			switch {
			case e.closing:
				n.rank, n.order = 0, -i
			case e.at == e.end:
				n.rank = 1
			}
			byFile[site.File] = append(byFile[site.File], n)
		}
	}
	out := map[string][]byte{}
	for name, edits := range byFile {
		slices.SortStableFunc(edits, func(a, b numbered) int {
			return cmp.Or(a.at-b.at, a.rank-b.rank, a.order-b.order)
		})
		src, at := s.text[name], 0
		var b strings.Builder
		for _, e := range edits {
			b.Write(src[at:e.at])
			b.WriteString(e.text)
			at = e.end
		}
		b.Write(src[at:])
		out[name] = []byte(b.String())
	}
	return out
}

// compiles reports whether the package with these sites woven in still types.
func (s *source) compiles(sites []*Site) error {
	files := maps.Clone(s.files)
	woven := s.weave(sites)
	woven[supportName] = []byte("package " + s.pkg.Name() + "\n\nfunc mutantOn(int) bool { return false }\n")
	for name, text := range woven {
		var err error
		if files[name], err = parser.ParseFile(s.fset, name, text, parser.SkipObjectResolution); err != nil {
			return err
		}
	}
	_, err := s.conf.Check(s.pkg.Path(), s.fset, slices.Collect(maps.Values(files)), nil)
	return err
}
