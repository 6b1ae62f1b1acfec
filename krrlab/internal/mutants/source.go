package mutants

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// source is a package as it stands, parsed and typed.
type source struct {
	path    string // in the module
	imp     string // import path
	dir     string
	names   []string // base names of its files, tests excluded
	text    map[string][]byte
	fset    *token.FileSet
	files   map[string]*ast.File
	info    *types.Info
	pkg     *types.Package
	imports types.Importer
}

// load parses and types the files of one package; exports maps import paths to files of
// export data.
func load(pathInModule, imp, dir string, names []string, exports map[string]string) (*source, error) {
	s := &source{path: pathInModule, imp: imp, dir: dir, names: names, text: map[string][]byte{}, fset: token.NewFileSet(), files: map[string]*ast.File{}}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		s.text[name] = b
		if s.files[name], err = parser.ParseFile(s.fset, name, b, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}
	s.imports = importer.ForCompiler(s.fset, "gc", func(p string) (io.ReadCloser, error) {
		if exports[p] == "" {
			return nil, fmt.Errorf("mutants: no export data of %s", p)
		}
		return os.Open(exports[p])
	})
	s.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	var err error
	s.pkg, err = s.check(nil, s.info)
	return s, err
}

// check types the package with some of its files changed.
func (s *source) check(changed map[string]*ast.File, info *types.Info) (*types.Package, error) {
	var files []*ast.File
	for _, name := range s.names {
		f := changed[name]
		if f == nil {
			f = s.files[name]
		}
		files = append(files, f)
	}
	if f := changed[supportName]; f != nil {
		files = append(files, f)
	}
	conf := types.Config{Importer: s.imports, Sizes: types.SizesFor("gc", "amd64")}
	return conf.Check(s.imp, s.fset, files, info)
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
	t := types.Default(tv.Type)
	ok = true
	name = types.TypeString(t, func(p *types.Package) string {
		if p == s.pkg {
			return ""
		}
		for _, spec := range file.Imports {
			if strings.Trim(spec.Path.Value, `"`) == p.Path() {
				if spec.Name != nil {
					return spec.Name.Name
				}
				return p.Name()
			}
		}
		ok = false
		return ""
	})
	return name, ok && !strings.Contains(name, "invalid")
}

func (s *source) isNumber(e ast.Expr) bool {
	t := s.info.Types[e].Type
	if t == nil {
		return false
	}
	if p, ok := t.(*types.TypeParam); ok { // a constraint of numbers has no strings in it here
		return !strings.Contains(p.Constraint().Underlying().String(), "string")
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0
}

// constant adds sites that change a literal (kind is "INT" or "FLOAT") or the use of a named
// constant (kind is "") that is a plain number.
func (f *finder) constant(n ast.Expr, kind string) {
	tv := f.info.Types[n]
	if id, ok := n.(*ast.Ident); ok {
		c, isConst := f.info.Uses[id].(*types.Const)
		if !isConst || c.Pkg() == nil {
			return
		}
		if _, named := c.Type().(*types.Named); named {
			return
		}
		kind = "FLOAT"
		if b, ok := c.Type().Underlying().(*types.Basic); !ok || b.Info()&types.IsNumeric == 0 {
			return
		} else if b.Info()&types.IsInteger != 0 {
			kind = "INT"
		}
		tv = f.info.Types[n]
	}
	if tv.Type == nil || tv.Value == nil || kind != "INT" && kind != "FLOAT" {
		return
	}
	basic, ok := tv.Type.Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsNumeric == 0 {
		return
	}
	text := f.text(n)
	switch {
	case tv.Value.ExactString() == "0" && basic.Info()&types.IsFloat != 0:
		f.replace(n, "const", "1")
	case basic.Info()&types.IsFloat != 0:
		f.replace(n, "const", text+" * 1.1")
	case basic.Info()&types.IsInteger != 0:
		f.replace(n, "const", text+" + 1")
		if tv.Value.ExactString() != "0" {
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

// weave returns the files that hold the sites, mutant first + i for site i, by name.
func (s *source) weave(sites []*Site, first int) map[string][]byte {
	type numbered struct {
		edit
		order int
	}
	byFile := map[string][]numbered{}
	for i, site := range sites {
		for _, e := range site.edits {
			e.text = expand(e.text, first+i)
			byFile[site.File] = append(byFile[site.File], numbered{e, i})
		}
	}
	out := map[string][]byte{}
	for name, edits := range byFile {
		// At one place what closes comes first, then what opens, then a replacement. Of two that
		// close the later opened one is closed first; which is which does not matter for braces.
		rank := func(e numbered) int {
			switch {
			case e.closing:
				return 0
			case e.at == e.end:
				return 1
			}
			return 2
		}
		slices.SortStableFunc(edits, func(a, b numbered) int {
			if a.at != b.at {
				return a.at - b.at
			}
			if r := rank(a) - rank(b); r != 0 {
				return r
			}
			if a.closing { // inner sites are found after outer ones
				return b.order - a.order
			}
			return a.order - b.order
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

// expand puts the number of the mutant in its place.
func expand(text string, id int) string {
	return strings.Replace(text, "mutantOn(%d)", fmt.Sprintf("mutantOn(%d)", id), 1)
}

var errOverlap = errors.New("mutants: sites overlap")

// compiles reports whether the package with these sites woven in still types.
func (s *source) compiles(sites []*Site) error {
	for i, a := range sites {
		for _, b := range sites[:i] {
			if a.overlaps(b) {
				return errOverlap
			}
		}
	}
	changed := map[string]*ast.File{}
	for name, text := range s.weave(sites, 1) {
		f, err := parser.ParseFile(s.fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		changed[name] = f
	}
	f, err := parser.ParseFile(s.fset, supportName, "package "+s.pkg.Name()+"\n\nfunc mutantOn(int) bool { return false }\n", parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	changed[supportName] = f
	_, err = s.check(changed, nil)
	return err
}

// localPath is the path in the module of an import path.
func localPath(module, imp string) string {
	if imp == module {
		return "."
	}
	return path.Clean(strings.TrimPrefix(imp, module+"/"))
}
