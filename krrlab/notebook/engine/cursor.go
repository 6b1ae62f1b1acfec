package engine

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// Cursor describes the code at the cursor in a cell that is being edited.
type Cursor struct {
	// Path leads from the file to the name before the cursor, which is the last element, an *ast.Ident.
	Path  []ast.Node
	Info  *types.Info             // type information of the code before the cursor
	Names map[string]types.Object // objects that can be named at the cursor
}

// cursorMark is appended to the code, so that there is an identifier at the cursor even if the user has typed none of
// it.
const cursorMark = ReservedPrefix + "here"

// calledLiteral matches code that ends at the beginning of the body of a function literal which go or defer must call.
var calledLiteral = regexp.MustCompile(`\b(go|defer)\s+func\s*\([^{}]*\{$`)

// Cursor analyzes the code of a cell up to the cursor. It returns nil if no name can follow there. Nothing is executed,
// and errors in the code are ignored.
func (e *Engine) Cursor(code string) *Cursor {
	e.mu.Lock()
	defer e.mu.Unlock()
	findSource := e.FindSource
	e.FindSource = nil // no search for packages while the user types
	defer func() { e.FindSource = findSource }()
	code += cursorMark
	openBrackets, _ := OpenBrackets(code)
	for _, offset := range slices.Backward(openBrackets) {
		code += map[byte]string{'(': ")", '[': "]", '{': "}"}[code[offset]]
		if calledLiteral.MatchString(code[:offset+1]) {
			code += "()"
		}
	}
	items, _, err := e.splitItems("", code)
	if err != nil {
		return nil
	}
	visible := e.visible.clone()
	for _, section := range groupItems(items) {
		file, _ := e.parse("", code, section)
		if file == nil {
			continue
		}
		defer e.fset.RemoveFile(e.fset.File(file.Pos()))
		if e.resolveImports(file, visible, map[string]types.Object{}) != nil || section.kind == importDecl {
			continue
		}
		if cursor := e.findCursor(file, visible); cursor.Path != nil {
			return cursor
		}
	}
	return nil
}

// findCursor type-checks a section of a cell and adds its names to visible: those of the scope around the cursor, or
// those at the end of the section if the cursor is elsewhere. In the second case, the Path of the result is nil.
func (e *Engine) findCursor(file *ast.File, visible namespace) *Cursor {
	e.addImplicitImports(file, visible)
	src := &syntax{files: []*ast.File{file}, info: newInfo()}
	_ = e.checkInNamespace(src, visible)
	scope, cursor := e.pkg.Scope(), &Cursor{Info: src.info, Names: visible.names}
	ast.PreorderStack(file, nil, func(n ast.Node, ancestors []ast.Node) bool {
		ident, ok := n.(*ast.Ident)
		if ok && strings.HasSuffix(ident.Name, cursorMark) {
			ident.Name = strings.TrimSuffix(ident.Name, cursorMark)
			cursor.Path, scope = append(slices.Clone(ancestors), n), e.pkg.Scope().Child(0).Innermost(n.Pos())
		} else if ok && ident.Name == runFunc && cursor.Path == nil {
			scope = src.info.Scopes[ancestors[len(ancestors)-1].(*ast.FuncDecl).Type]
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
	for name, obj := range names {
		visible.bind(name, obj)
	}
	if cursor.Path != nil {
		for name, path := range visible.imports {
			cursor.Names[name] = types.NewPkgName(token.NoPos, nil, name, e.Package(path))
		}
	}
	return cursor
}

// OpenBrackets returns the offsets of the brackets that are still open at the end of code. quote is the offset of an
// unterminated string or comment at the end, or −1 if there is none.
func OpenBrackets(code string) (open []int, quote int) {
	var tokens scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	quote = -1
	tokens.Init(file, []byte(code), func(pos token.Position, msg string) {
		if strings.Contains(msg, "string literal not terminated") || msg == "comment not terminated" {
			quote = pos.Offset
		}
	}, 0)
	for {
		tokenPos, tok, _ := tokens.Scan()
		switch tok {
		case token.EOF:
			// A string in double quotes cannot be continued on the next line, so it is an error there.
			if quote >= 0 && code[quote] == '"' && strings.Contains(code[quote:], "\n") {
				quote = -1
			}
			return open, quote
		case token.LPAREN, token.LBRACE, token.LBRACK:
			open = append(open, file.Offset(tokenPos))
		case token.RPAREN, token.RBRACE, token.RBRACK:
			open = open[:max(0, len(open)-1)]
		}
	}
}

// MemberNames returns the names of the fields and methods of a type that a cell can use, sorted, including promoted
// ones, down to embedded structs of embeddingDepth levels.
func MemberNames(typ types.Type) []string {
	const embeddingDepth = 4 // also ends the search in a struct that embeds a pointer to itself
	names := map[string]bool{}
	add := func(obj types.Object) {
		if obj.Exported() || isDeclaredByCell(obj) {
			names[obj.Name()] = true
		}
	}
	var addFields func(typ types.Type, depth int)
	addFields = func(typ types.Type, depth int) {
		if p, ok := typ.Underlying().(*types.Pointer); ok {
			typ = p.Elem()
		}
		s, ok := typ.Underlying().(*types.Struct)
		if !ok || depth > embeddingDepth {
			return
		}
		for f := range s.Fields() {
			add(f)
			if f.Embedded() {
				addFields(f.Type(), depth+1)
			}
		}
	}
	addFields(typ, 0)
	for _, m := range typeutil.IntuitiveMethodSet(typ, nil) {
		add(m.Obj())
	}
	return slices.Sorted(maps.Keys(names))
}

// TypeString returns a type as a cell would write it.
func TypeString(t types.Type) string { return types.TypeString(t, qualifier) }

// qualifier returns the name of a package in front of its types: "" for types of cells. A patch (see loader.load) has
// the name of the package that it patches.
func qualifier(pkg *types.Package) string {
	if pkg.Path() == mainPath {
		return ""
	}
	return strings.TrimSuffix(pkg.Name(), "@patch")
}

// Package returns a package that cells can import, or nil if it is not available.
func (e *Engine) Package(path string) *types.Package {
	if u := e.sourceUnits[path]; u != nil {
		return u.pkg
	}
	pkg, err := e.loader.Import(path)
	if err != nil {
		return nil
	}
	return pkg
}

// ObjectString returns the declaration of an object as a cell would write it.
func ObjectString(obj types.Object) string { return types.ObjectString(obj, qualifier) }

// LookupMember returns the field or method of t with the given name, or nil.
func LookupMember(t types.Type, name string) types.Object {
	obj, _, _ := types.LookupFieldOrMethod(t, true, types.NewPackage(mainPath, "main"), name)
	return obj
}

// CheckSyntax returns the first syntax error of a cell, or nil.
func (e *Engine) CheckSyntax(code string) error {
	items, _, err := e.splitItems("", code)
	if err != nil {
		return err
	}
	for _, section := range groupItems(items) {
		file, err := e.parse("", code, section)
		if file != nil {
			e.fset.RemoveFile(e.fset.File(file.Pos()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
