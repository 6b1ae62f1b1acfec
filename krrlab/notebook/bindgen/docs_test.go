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

// Entry is the documentation of one name. The type repeats bindings.Entry, because this package does not import package
// bindings.
type Entry struct {
	Decl string `json:"decl"`
	Doc  string `json:"doc,omitempty"`
}

// TestDocs collects the documentation of all bound packages. Every exported name must have a declaration, and 95 % of
// them a comment. With -update, it writes the file that make build embeds.
func TestDocs(t *testing.T) {
	pkgs := testkit.Must(loadBound(".", packages.LoadSyntax))
	index := NewIndex(pkgs)
	all := map[string]map[string]Entry{}
	nameCount, missing := 0, []string{}
	for _, pkg := range pkgs {
		docs := pkg.Docs(index)
		all[pkg.importPath()] = docs
		for _, obj := range pkg.exportedObjects() {
			nameCount++
			switch entry := docs[obj.Name()]; {
			case entry.Decl == "":
				t.Errorf("%s.%s has no declaration", pkg.Path, obj.Name())
			case entry.Doc == "":
				missing = append(missing, pkg.Path+"."+obj.Name())
			}
		}
	}
	// Fewer than 1,000 names would mean that packages are missing.
	if nameCount < 1000 || 20*len(missing) > nameCount {
		t.Errorf("%d of %d names in %d packages have no comment: %s", len(missing), nameCount, len(pkgs),
			strings.Join(missing, ", "))
	}
	for _, test := range []struct{ path, name, decl, doc string }{
		{module + "/krrlab", "New", "func New(train *", "New returns a Lab"},
		{module + "/krrlab", "Lab.Solve", "func (*Lab).Solve(ctx context.Context)", "Solve"},
		{module + "/krrlab", "Config.Lambda", "field Lambda float64", "ridge λ > 0"},
		{"gonum.org/v1/gonum/mat", "Dense.Mul", "func (*Dense).Mul(a Matrix, b Matrix)", "Mul takes the matrix product"},
		{"gonum.org/v1/gonum/mat", "", "package mat", "Package mat provides"},
		{"display", "HTML", "func HTML", "HTML"},
	} {
		entry := all[test.path][test.name]
		if !strings.HasPrefix(entry.Decl, test.decl) || !strings.HasPrefix(entry.Doc, test.doc) {
			t.Errorf("%s.%s: %q, %.60q", test.path, test.name, entry.Decl, entry.Doc)
		}
	}
	if !*update {
		return
	}
	var compressed bytes.Buffer
	compressor := testkit.Must(gzip.NewWriterLevel(&compressed, gzip.BestCompression))
	testkit.OK(t, json.NewEncoder(compressor).Encode(all))
	testkit.OK(t, compressor.Close())
	testkit.OK(t, os.WriteFile(docsFile, compressed.Bytes(), 0o644))
}

// Index contains the comments of several packages, by the full name of the documented object.
type Index map[string]string

// NewIndex collects the comments of packages.
func NewIndex(pkgs []*Package) Index {
	index := Index{}
	for _, pkg := range pkgs {
		for _, file := range pkg.files {
			if file.Doc != nil && len(file.Doc.Text()) > len(index[pkg.Path]) {
				index[pkg.Path] = file.Doc.Text()
			}
			for _, decl := range file.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					index.add(pkg.Path, funcKey(decl), decl.Doc)
				case *ast.GenDecl:
					index.addDecl(pkg.Path, decl)
				}
			}
		}
	}
	return index
}

// add stores the first comment that is not nil, unless the name has one already.
func (index Index) add(path, name string, groups ...*ast.CommentGroup) {
	key := path + "." + name
	for _, group := range groups {
		if group != nil && index[key] == "" {
			index[key] = strings.TrimSpace(group.Text())
		}
	}
}

// funcKey returns the name of a function, or Type.Method for a method.
func funcKey(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	recvType := decl.Recv.List[0].Type
	if star, ok := recvType.(*ast.StarExpr); ok {
		recvType = star.X
	}
	switch generic := recvType.(type) {
	case *ast.IndexExpr:
		recvType = generic.X
	case *ast.IndexListExpr:
		recvType = generic.X
	}
	if ident, ok := recvType.(*ast.Ident); ok {
		return ident.Name + "." + decl.Name.Name
	}
	return decl.Name.Name
}

// addDecl adds the comments of a declaration of types, variables or constants.
func (index Index) addDecl(path string, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			index.add(path, spec.Name.Name, spec.Doc, spec.Comment, decl.Doc)
			for _, member := range membersOf(spec.Type) {
				for _, name := range member.Names {
					index.add(path, spec.Name.Name+"."+name.Name, member.Doc, member.Comment)
				}
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				index.add(path, name.Name, spec.Doc, spec.Comment, decl.Doc)
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
func (p *Package) Docs(index Index) map[string]Entry {
	docs := map[string]Entry{"": {Decl: fmt.Sprintf("package %s // import %q", p.Types.Name(), p.Path),
		Doc: strings.TrimSpace(index[p.Path])}}
	qualifier := func(pkg *types.Package) string { // qualifies names as in cells
		if pkg == p.Types {
			return ""
		}
		return pkg.Name()
	}
	decls := p.typeDecls()
	for _, obj := range p.exportedObjects() {
		entry := Entry{Decl: types.ObjectString(obj, qualifier),
			Doc: docOrTypeDoc(index[p.Path+"."+obj.Name()], obj, index)}
		switch obj := obj.(type) {
		case *types.Const:
			entry.Decl += " = " + obj.Val().String()
		case *types.TypeName:
			if decl := decls[obj.Name()]; decl != "" {
				entry.Decl = decl
			}
			p.addMembers(docs, obj, index, qualifier)
		}
		docs[obj.Name()] = entry
	}
	return docs
}

// docOrTypeDoc returns doc or, if it is empty, the comment of the named type of a constant or variable, since this
// describes all values of an enumeration.
func docOrTypeDoc(doc string, obj types.Object, index Index) string {
	named, ok := obj.Type().(*types.Named)
	if doc != "" || !ok || named.Obj().Pkg() == nil {
		return doc
	}
	return index[named.Obj().Pkg().Path()+"."+named.Obj().Name()]
}

// addMembers adds the documentation of the methods and fields of a type to docs.
func (p *Package) addMembers(docs map[string]Entry, obj *types.TypeName, index Index, qualifier types.Qualifier) {
	typ := types.Unalias(obj.Type())
	if structType, ok := typ.Underlying().(*types.Struct); ok {
		for i := range structType.NumFields() {
			if field := structType.Field(i); field.Exported() {
				key := obj.Name() + "." + field.Name()
				help := reflect.StructTag(structType.Tag(i)).Get("help") // help text of an option
				docs[key] = Entry{Decl: types.ObjectString(field, qualifier), Doc: cmp.Or(index[p.Path+"."+key], help)}
			}
		}
	}
	recv := typ
	if !types.IsInterface(typ) {
		recv = types.NewPointer(typ)
	}
	methods := types.NewMethodSet(recv)
	for i := range methods.Len() {
		method, ok := methods.At(i).Obj().(*types.Func)
		if !ok || !method.Exported() {
			continue
		}
		docs[obj.Name()+"."+method.Name()] = Entry{Decl: types.ObjectString(method, qualifier),
			Doc: index[originKey(method)]}
	}
}

// originKey returns the key of a method in an Index, at the type that declares it.
func originKey(method *types.Func) string {
	recv := method.Signature().Recv()
	if recv == nil || method.Pkg() == nil {
		return ""
	}
	recvType := recv.Type()
	if pointer, ok := recvType.(*types.Pointer); ok {
		recvType = pointer.Elem()
	}
	if named, ok := recvType.(*types.Named); ok {
		return method.Pkg().Path() + "." + named.Obj().Name() + "." + method.Name()
	}
	return ""
}

// typeDecls returns the source of every exported type declaration, without its comment.
func (p *Package) typeDecls() map[string]string {
	decls := map[string]string{}
	for _, file := range p.files {
		ast.Inspect(file, func(node ast.Node) bool {
			if typeSpec, ok := node.(*ast.TypeSpec); ok && typeSpec.Name.IsExported() {
				var text bytes.Buffer
				spec := *typeSpec
				spec.Doc, spec.Comment = nil, nil
				config := printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}
				if config.Fprint(&text, p.fset, &printer.CommentedNode{Node: &spec, Comments: file.Comments}) == nil {
					decls[typeSpec.Name.Name] = "type " + text.String()
				}
			}
			_, isFunc := node.(*ast.FuncDecl)
			return !isFunc
		})
	}
	return decls
}
