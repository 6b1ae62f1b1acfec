package engine

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// Spot is the end of code that is being typed.
type Spot struct {
	Path  []ast.Node // what the last name stands in, from the file to the name, an *ast.Ident
	Info  *types.Info
	Names map[string]types.Object // what can be named there
}

// here ends the name at the end of code, which may have no other letters.
const here = Hidden + "here"

// Spot looks at the code of a cell up to the cursor, nil if no name can stand there. Nothing is executed, and what is
// wrong in the code is passed over.
func (e *Engine) Spot(code string) *Spot {
	e.mu.Lock()
	defer e.mu.Unlock()
	find := e.Find
	e.Find = nil // while one types nothing is looked for
	defer func() { e.Find = find }()
	code += here
	open, _ := Brackets(code)
	for _, i := range slices.Backward(open) {
		code += map[byte]string{'(': ")", '[': "]", '{': "}"}[code[i]]
	}
	items, _, err := e.items("", code)
	if err != nil {
		return nil
	}
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
		e.linked(file, sees)
		src := &source{files: []*ast.File{file}, info: newInfo()}
		_ = e.types(src, sees)
		scope, spot := e.pkg.Scope(), &Spot{Info: src.info, Names: sees.names}
		ast.PreorderStack(file, nil, func(n ast.Node, within []ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if ok && strings.HasSuffix(id.Name, here) {
				id.Name = strings.TrimSuffix(id.Name, here)
				spot.Path, scope = append(slices.Clone(within), n), e.pkg.Scope().Child(0).Innermost(n.Pos())
			} else if ok && id.Name == runName && spot.Path == nil {
				scope = src.info.Scopes[within[len(within)-1].(*ast.FuncDecl).Type]
			}
			return true
		})
		names := map[string]types.Object{}
		for ; scope != nil && scope != e.pkg.Scope().Parent(); scope = scope.Parent() {
			for _, name := range scope.Names() {
				if _, imported := scope.Lookup(name).(*types.PkgName); !imported && names[name] == nil {
					names[name] = scope.Lookup(name)
				}
			}
		}
		for name, o := range names {
			sees.set(name, o)
		}
		if spot.Path != nil {
			for name, path := range sees.imports {
				spot.Names[name] = types.NewPkgName(token.NoPos, nil, name, e.Package(path))
			}
			return spot
		}
	}
	return nil
}

// Brackets returns where the brackets stand that are open at the end of code, and where a string or a comment begins
// that is, −1 if none is.
func Brackets(code string) (open []int, quote int) {
	var sc scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	quote = -1
	sc.Init(file, []byte(code), func(at token.Position, msg string) {
		if strings.Contains(msg, "string literal not terminated") || msg == "comment not terminated" {
			quote = at.Offset
		}
	}, 0)
	for {
		pos, tok, _ := sc.Scan()
		switch tok {
		case token.EOF:
			if quote >= 0 && code[quote] == '"' && strings.Contains(code[quote:], "\n") {
				quote = -1
			}
			return open, quote
		case token.LPAREN, token.LBRACE, token.LBRACK:
			open = append(open, file.Offset(pos))
		case token.RPAREN, token.RBRACE, token.RBRACK:
			open = open[:max(0, len(open)-1)]
		}
	}
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
	for _, m := range typeutil.IntuitiveMethodSet(t, nil) {
		add(m.Obj())
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
