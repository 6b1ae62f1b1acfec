package bindgen

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/printer"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// docsFile is the path of bindings.DocsFile relative to this package.
var docsFile = filepath.Join("..", "bindings", "docs", "docs.json.gz")

// Entry is the documentation of one name. It repeats bindings.Entry, because this package does not import that one.
type Entry struct {
	Decl string `json:"decl"`
	Doc  string `json:"doc,omitempty"`
}

// TestDocs collects the documentation of all bound packages. Every exported name must have a declaration, and 95 % of
// them a comment. With -update, it writes the file that make build embeds.
func TestDocs(t *testing.T) {
	ps := testkit.Must(loadBound(".", packages.LoadSyntax))
	ix := NewIndex(ps)
	all := map[string]map[string]Entry{}
	names, missing := 0, []string{}
	for _, p := range ps {
		docs := p.Docs(ix)
		all[p.name()] = docs
		for _, o := range p.exported() {
			names++
			switch e := docs[o.Name()]; {
			case e.Decl == "":
				t.Errorf("%s.%s has no declaration", p.Path, o.Name())
			case e.Doc == "":
				missing = append(missing, p.Path+"."+o.Name())
			}
		}
	}
	if names < 1000 || 20*len(missing) > names {
		t.Errorf("%d of %d names in %d packages have no comment: %s", len(missing), names, len(ps),
			strings.Join(missing, ", "))
	}
	for _, c := range []struct{ path, name, decl, doc string }{
		{module + "/krrlab", "New", "func New(train *", "New returns a Lab"},
		{module + "/krrlab", "Lab.Solve", "func (*Lab).Solve(ctx context.Context)", "Solve"},
		{module + "/krrlab", "Config.Lambda", "field Lambda float64", "ridge λ > 0"},
		{"gonum.org/v1/gonum/mat", "Dense.Mul", "func (*Dense).Mul(a Matrix, b Matrix)", "Mul takes the matrix product"},
		{"gonum.org/v1/gonum/mat", "", "package mat", "Package mat provides"},
		{"display", "HTML", "func HTML", "HTML"},
	} {
		e := all[c.path][c.name]
		if !strings.HasPrefix(e.Decl, c.decl) || !strings.HasPrefix(e.Doc, c.doc) {
			t.Errorf("%s.%s: %q, %.60q", c.path, c.name, e.Decl, e.Doc)
		}
	}
	if !*update {
		return
	}
	var b bytes.Buffer
	z := testkit.Must(gzip.NewWriterLevel(&b, gzip.BestCompression))
	testkit.OK(t, json.NewEncoder(z).Encode(all))
	testkit.OK(t, z.Close())
	testkit.OK(t, os.WriteFile(docsFile, b.Bytes(), 0o644))
}

// Index contains the comments of several packages, by the full name of the documented object.
type Index map[string]string

// NewIndex collects the comments of packages.
func NewIndex(ps []*Package) Index {
	ix := Index{}
	for _, p := range ps {
		for _, f := range p.files {
			if f.Doc != nil && len(f.Doc.Text()) > len(ix[p.Path]) {
				ix[p.Path] = f.Doc.Text()
			}
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					ix.add(p.Path, funcKey(d), d.Doc)
				case *ast.GenDecl:
					ix.addDecl(p.Path, d)
				}
			}
		}
	}
	return ix
}

// add stores the first comment that is not nil, unless the name has one already.
func (ix Index) add(path, name string, groups ...*ast.CommentGroup) {
	key := path + "." + name
	for _, g := range groups {
		if g != nil && ix[key] == "" {
			ix[key] = strings.TrimSpace(g.Text())
		}
	}
}

// funcKey returns the name of a function, or Type.Method for a method.
func funcKey(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	if s, ok := t.(*ast.StarExpr); ok {
		t = s.X
	}
	switch x := t.(type) {
	case *ast.IndexExpr:
		t = x.X
	case *ast.IndexListExpr:
		t = x.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

// addDecl adds the comments of a declaration of types, variables or constants.
func (ix Index) addDecl(path string, d *ast.GenDecl) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			ix.add(path, s.Name.Name, s.Doc, s.Comment, d.Doc)
			for _, f := range membersOf(s.Type) {
				for _, n := range f.Names {
					ix.add(path, s.Name.Name+"."+n.Name, f.Doc, f.Comment)
				}
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				ix.add(path, n.Name, s.Doc, s.Comment, d.Doc)
			}
		}
	}
}

// membersOf returns the fields of a struct type or the methods of an interface type.
func membersOf(typ ast.Expr) []*ast.Field {
	switch t := typ.(type) {
	case *ast.StructType:
		return t.Fields.List
	case *ast.InterfaceType:
		return t.Methods.List
	}
	return nil
}

// Docs returns the declarations and comments of the exported names of p, of the fields and methods of its types (as
// Type.Name), and of the package itself (as "").
func (p *Package) Docs(ix Index) map[string]Entry {
	out := map[string]Entry{"": {Decl: fmt.Sprintf("package %s // import %q", p.Types.Name(), p.Path),
		Doc: strings.TrimSpace(ix[p.Path])}}
	qual := func(q *types.Package) string { // qualifies names as in cells
		if q == p.Types {
			return ""
		}
		return q.Name()
	}
	decls := p.typeDecls()
	for _, o := range p.exported() {
		e := Entry{Decl: types.ObjectString(o, qual), Doc: docOrTypeDoc(ix[p.Path+"."+o.Name()], o, ix)}
		switch o := o.(type) {
		case *types.Const:
			e.Decl += " = " + o.Val().String()
		case *types.TypeName:
			if d := decls[o.Name()]; d != "" {
				e.Decl = d
			}
			p.addMembers(out, o, ix, qual)
		}
		out[o.Name()] = e
	}
	return out
}

// docOrTypeDoc returns doc or, if it is empty, the comment of the named type of a constant or variable, since this
// describes all values of an enumeration.
func docOrTypeDoc(doc string, o types.Object, ix Index) string {
	named, ok := o.Type().(*types.Named)
	if doc != "" || !ok || named.Obj().Pkg() == nil {
		return doc
	}
	return ix[named.Obj().Pkg().Path()+"."+named.Obj().Name()]
}

// addMembers adds the documentation of the methods and fields of a type to out.
func (p *Package) addMembers(out map[string]Entry, o *types.TypeName, ix Index, qual types.Qualifier) {
	t := types.Unalias(o.Type())
	if s, ok := t.Underlying().(*types.Struct); ok {
		for i := range s.NumFields() {
			if f := s.Field(i); f.Exported() {
				key := o.Name() + "." + f.Name()
				help := reflect.StructTag(s.Tag(i)).Get("help") // help text of an option
				out[key] = Entry{Decl: types.ObjectString(f, qual), Doc: cmp.Or(ix[p.Path+"."+key], help)}
			}
		}
	}
	recv := t
	if !types.IsInterface(t) {
		recv = types.NewPointer(t)
	}
	set := types.NewMethodSet(recv)
	for i := range set.Len() {
		m, ok := set.At(i).Obj().(*types.Func)
		if !ok || !m.Exported() {
			continue
		}
		out[o.Name()+"."+m.Name()] = Entry{Decl: types.ObjectString(m, qual), Doc: ix[originKey(m)]}
	}
}

// originKey returns the key of a method in an Index, at the type that declares it.
func originKey(m *types.Func) string {
	recv := m.Signature().Recv()
	if recv == nil || m.Pkg() == nil {
		return ""
	}
	t := recv.Type()
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	if named, ok := t.(*types.Named); ok {
		return m.Pkg().Path() + "." + named.Obj().Name() + "." + m.Name()
	}
	return ""
}

// typeDecls returns the source of every exported type declaration, without its comment.
func (p *Package) typeDecls() map[string]string {
	out := map[string]string{}
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && s.Name.IsExported() {
				var b bytes.Buffer
				spec := *s
				spec.Doc, spec.Comment = nil, nil
				cfg := printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}
				if cfg.Fprint(&b, p.fset, &printer.CommentedNode{Node: &spec, Comments: f.Comments}) == nil {
					out[s.Name.Name] = "type " + b.String()
				}
			}
			_, isFunc := n.(*ast.FuncDecl)
			return !isFunc
		})
	}
	return out
}
