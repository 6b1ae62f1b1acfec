package engine

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// Probe returns the type of an expression that stands behind other code of a cell, and the object that it is
// if it is a name. Nothing is executed, and what is wrong in the code is passed over.
func (e *Engine) Probe(before, expr string) (types.Type, types.Object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	find := e.Find
	e.Find = nil // while one types nothing is looked for
	defer func() { e.Find = find }()
	const mark = Hidden + "probe"
	code := before + mark + "(" + expr + ")"
	if e.view.names[mark] == nil {
		any := types.NewVar(token.NoPos, nil, "", types.NewSlice(types.Universe.Lookup("any").Type()))
		f := types.NewFunc(token.NoPos, e.pkg, mark, types.NewSignatureType(nil, nil, nil, types.NewTuple(any), nil,
			true))
		e.view.names[mark] = f
		defer delete(e.view.names, mark)
	}
	items, _, err := e.items("", code+closers(code))
	if err != nil {
		return nil, nil
	}
	code += closers(code)
	sees := e.view.clone()
	for _, p := range parts(items) {
		file, _ := e.parse("", code, p)
		if file == nil {
			continue
		}
		defer e.fset.RemoveFile(e.fset.File(file.Pos()))
		if e.imports(file, sees, map[string]types.Object{}) != nil || p.kind == importing {
			continue
		}
		e.autoImport(file, sees)
		src := &source{files: []*ast.File{file}, info: newInfo()}
		_ = e.types(src, sees.names, false)
		for _, name := range e.pkg.Scope().Names() {
			sees.set(name, e.pkg.Scope().Lookup(name))
		}
		var found ast.Expr
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && len(c.Args) == 1 {
				if id, ok := c.Fun.(*ast.Ident); ok && id.Name == mark {
					found = c.Args[0]
				}
			}
			return true
		})
		if found != nil {
			var o types.Object
			if id, ok := found.(*ast.Ident); ok {
				o = src.info.ObjectOf(id)
			} else if sel, ok := found.(*ast.SelectorExpr); ok {
				o = src.info.ObjectOf(sel.Sel)
			}
			return src.info.TypeOf(found), o
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == runName {
				for _, st := range fn.Body.List {
					if a, ok := st.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
						for _, x := range a.Lhs {
							if id, ok := x.(*ast.Ident); ok {
								if o := src.info.Defs[id]; o != nil {
									sees.set(id.Name, o)
								}
							}
						}
					}
				}
			}
		}
	}
	return nil, nil
}

// Brackets returns where the brackets stand that are open at the end of code, and its last token.
func Brackets(code string) (open []int, last token.Token) {
	var sc scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	sc.Init(file, []byte(code), func(token.Position, string) {}, 0)
	for {
		pos, tok, lit := sc.Scan()
		switch tok {
		case token.EOF:
			return open, last
		case token.LPAREN, token.LBRACE, token.LBRACK:
			open = append(open, file.Offset(pos))
		case token.RPAREN, token.RBRACE, token.RBRACK:
			open = open[:max(0, len(open)-1)]
		}
		if tok != token.SEMICOLON || lit != "\n" {
			last = tok
		}
	}
}

// closers are the brackets that close those open at the end of code.
func closers(code string) (out string) {
	open, _ := Brackets(code)
	for _, i := range slices.Backward(open) {
		out += map[byte]string{'(': ")", '[': "]", '{': "}"}[code[i]]
	}
	return out
}

// Members returns the fields and methods that a cell can name of a value of a type, promoted ones too.
func Members(t types.Type) []string {
	set := map[string]bool{}
	add := func(o types.Object) {
		if o.Exported() || o.Pkg() != nil && o.Pkg().Path() == mainPath {
			set[o.Name()] = true
		}
	}
	var fields func(t types.Type, depth int)
	fields = func(t types.Type, depth int) {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		s, ok := t.Underlying().(*types.Struct)
		if !ok || depth > 4 {
			return
		}
		for f := range s.Fields() {
			add(f)
			if f.Embedded() {
				fields(f.Type(), depth+1)
			}
		}
	}
	fields(t, 0)
	if _, ok := t.Underlying().(*types.Pointer); !ok && !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	methods := types.NewMethodSet(t)
	for i := range methods.Len() {
		add(methods.At(i).Obj())
	}
	return slices.Sorted(maps.Keys(set))
}

// TypeString writes a type as a cell would.
func TypeString(t types.Type) string { return types.TypeString(t, qualifier) }

func qualifier(p *types.Package) string {
	if p.Path() == mainPath {
		return ""
	}
	return strings.TrimSuffix(p.Name(), "@patch")
}

// Package returns what is known of a package that cells can import, nil if it is not there.
func (e *Engine) Package(path string) *types.Package {
	if u := e.sources[path]; u != nil {
		return u.pkg
	}
	if _, ok := Packages()[path]; !ok {
		return nil
	}
	p, err := e.loader.Import(path)
	if err != nil {
		return nil
	}
	return p
}

// ObjectString writes the declaration of an object as a cell would see it.
func ObjectString(o types.Object) string { return types.ObjectString(o, qualifier) }

// Member returns a field or method of a type.
func Member(t types.Type, name string) types.Object {
	o, _, _ := types.LookupFieldOrMethod(t, true, types.NewPackage(mainPath, "main"), name)
	return o
}

// Parse reports what is wrong with the syntax of a cell.
func (e *Engine) Parse(name, code string) error {
	items, _, err := e.items(name, code)
	if err != nil {
		return err
	}
	for _, p := range parts(items) {
		file, err := e.parse(name, code, p)
		if file != nil {
			e.fset.RemoveFile(e.fset.File(file.Pos()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
