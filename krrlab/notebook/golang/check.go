package golang

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"reflect"
	"strings"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/xreflect"
)

// trap is what is found in a cell before it runs.
type trap struct {
	name, text string
	line       int
}

// prescan finds in the tokens of a cell what the interpreter cannot parse: generics.
func (s *Session) prescan(src string) *trap {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(src))
	var sc scanner.Scanner
	sc.Init(file, []byte(src), func(token.Position, string) {}, 0)
	var before [3]token.Token // the tokens before, the nearest first
	for {
		pos, tok, _ := sc.Scan()
		if tok == token.EOF {
			return nil
		}
		line := file.Line(pos)
		if before[0] == token.LBRACK && tok == token.IDENT && before[1] == token.IDENT {
			if before[2] == token.FUNC {
				return &trap{compileError, "a generic function: the interpreter has no generics; write it for the type you need, or in a compiled package", line}
			}
			if before[2] == token.TYPE && !arrayType(src[file.Offset(pos):]) {
				return &trap{compileError, "a generic type: the interpreter has no generics; write it for the type you need, or in a compiled package", line}
			}
		}
		before[2], before[1], before[0] = before[1], before[0], tok
	}
}

// arrayType reports whether what follows type T [ is the length of an array.
func arrayType(rest string) bool {
	inside, _, _ := strings.Cut(rest, "]")
	return !strings.ContainsAny(strings.TrimSpace(inside), " ,")
}

// check finds what the interpreter would carry out silently and wrong, or would need a
// network and minutes for.
func (s *Session) check(nodes []ast.Node) (found *trap) {
	k := &checker{s: s, local: map[string]bool{}}
	for _, n := range nodes {
		ast.Inspect(n, k.declared)
	}
	if found = k.missing(nodes); found != nil {
		return found
	}
	for _, n := range nodes {
		ast.Inspect(n, func(n ast.Node) bool {
			if found == nil && n != nil {
				found = k.node(n)
			}
			return found == nil
		})
	}
	return found
}

// checker looks at one cell. Names declared in it have a type that is not known yet.
type checker struct {
	s     *Session
	local map[string]bool
}

func (k *checker) declared(n ast.Node) bool {
	add := func(es ...ast.Expr) {
		for _, e := range es {
			if id, ok := e.(*ast.Ident); ok {
				k.local[id.Name] = true
			}
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			add(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			add(n.Key, n.Value)
		}
	case *ast.ValueSpec:
		for _, id := range n.Names {
			k.local[id.Name] = true
		}
	case *ast.Field:
		for _, id := range n.Names {
			k.local[id.Name] = true
		}
	case *ast.FuncDecl:
		k.local[n.Name.Name] = true
	case *ast.TypeSpec:
		k.local[n.Name.Name] = true
	}
	return true
}

func (k *checker) at(n ast.Node, format string, args ...any) *trap {
	return &trap{compileError, fmt.Sprintf(format, args...), k.s.ir.Comp.Fileset.Position(n.Pos()).Line}
}

// node checks one node of the cell.
func (k *checker) node(n ast.Node) *trap {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.SHL || n.Op == token.SHR {
			return nil
		}
		x, y := k.kind(n.X), k.kind(n.Y)
		if x != "" && y != "" && x != y {
			return k.at(n, "mismatched types: %s %s %s; the interpreter would take it silently", x, n.Op, y)
		}
	case *ast.ValueSpec:
		for _, v := range n.Values {
			if t := k.wants(v, k.typeKind(n.Type)); t != nil {
				return t
			}
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE && len(n.Lhs) == len(n.Rhs) {
			for i, v := range n.Rhs {
				if t := k.wants(v, k.kind(n.Lhs[i])); t != nil {
					return t
				}
			}
		}
	case *ast.CompositeLit:
		return k.composite(n)
	case *ast.CallExpr:
		return k.call(n)
	case *ast.FuncDecl:
		return k.returns(n.Type, n.Body)
	case *ast.FuncLit:
		return k.returns(n.Type, n.Body)
	}
	return nil
}

// The kinds that matter here.
const (
	aNumber = "number"
	aString = "string"
	aBool   = "bool"
)

// kind returns what an expression is, "" if that is not known.
func (k *checker) kind(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return aString
		}
		return aNumber
	case *ast.ParenExpr:
		return k.kind(e.X)
	case *ast.UnaryExpr:
		if e.Op == token.ADD || e.Op == token.SUB || e.Op == token.XOR {
			return k.kind(e.X)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
			if x := k.kind(e.X); x != "" {
				return x
			}
			return k.kind(e.Y)
		}
	case *ast.Ident:
		if (e.Name == "true" || e.Name == "false") && !k.local[e.Name] {
			return aBool
		}
		if !k.local[e.Name] {
			if sym := k.s.ir.Comp.TryResolve(e.Name); sym != nil {
				return kindOf(sym.Type)
			}
		}
	}
	return ""
}

func kindOf(t xreflect.Type) string {
	if t == nil {
		return ""
	}
	switch t.Kind() {
	case reflect.String:
		return aString
	case reflect.Bool:
		return aBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64:
		return aNumber
	}
	return ""
}

// typeKind returns what a type written in the cell is.
func (k *checker) typeKind(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok && id.Name == "string" && !k.local["string"] {
		return aString
	}
	return ""
}

// wants reports a number where a string is wanted: the interpreter makes a character of
// it.
func (k *checker) wants(v ast.Expr, kind string) *trap {
	if kind == aString && isConstant(v) && k.kind(v) == aNumber {
		return k.at(v, "a number where a string is wanted; the interpreter would convert it to a character: write it in quotes, or fmt.Sprint")
	}
	return nil
}

// isConstant reports whether e is made of literals.
func isConstant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.ParenExpr:
		return isConstant(e.X)
	case *ast.UnaryExpr:
		return isConstant(e.X)
	case *ast.BinaryExpr:
		return isConstant(e.X) && isConstant(e.Y)
	}
	return false
}

// composite checks the elements of slices, arrays and maps of strings.
func (k *checker) composite(n *ast.CompositeLit) *trap {
	var key, elem string
	switch t := n.Type.(type) {
	case *ast.ArrayType:
		elem = k.typeKind(t.Elt)
	case *ast.MapType:
		key, elem = k.typeKind(t.Key), k.typeKind(t.Value)
	}
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if t := k.wants(kv.Key, key); t != nil {
				return t
			}
			e = kv.Value
		}
		if t := k.wants(e, elem); t != nil {
			return t
		}
	}
	return k.fields(n)
}

// fields checks the fields of a struct of a compiled or an earlier type.
func (k *checker) fields(n *ast.CompositeLit) *trap {
	t := k.namedType(n.Type)
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok {
				if f, count := t.FieldByName(id.Name, t.PkgPath()); count == 1 {
					if tr := k.wants(kv.Value, kindOf(f.Type)); tr != nil {
						return tr
					}
				}
			}
		}
	}
	return nil
}

// namedType resolves T or pkg.T.
func (k *checker) namedType(e ast.Expr) xreflect.Type {
	switch e := e.(type) {
	case *ast.Ident:
		if !k.local[e.Name] {
			return k.s.ir.Comp.TryResolveType(e.Name)
		}
	case *ast.SelectorExpr:
		if imp := k.pkg(e.X); imp != nil {
			return imp.Types[e.Sel.Name]
		}
	}
	return nil
}

// pkg returns the package that an identifier stands for.
func (k *checker) pkg(e ast.Expr) *fast.Import {
	id, ok := e.(*ast.Ident)
	if !ok || k.local[id.Name] {
		return nil
	}
	if sym := k.s.ir.Comp.TryResolve(id.Name); sym != nil {
		imp, _ := sym.Value.(*fast.Import)
		return imp
	}
	return nil
}

// call checks the arguments of a function whose type is known.
func (k *checker) call(n *ast.CallExpr) *trap {
	var t xreflect.Type
	switch f := n.Fun.(type) {
	case *ast.Ident:
		if !k.local[f.Name] {
			if sym := k.s.ir.Comp.TryResolve(f.Name); sym != nil {
				t = sym.Type
			}
		}
	case *ast.SelectorExpr:
		if imp := k.pkg(f.X); imp != nil && imp.Binds[f.Sel.Name] != nil {
			t = imp.Binds[f.Sel.Name].Type
		}
	}
	if t == nil || t.Kind() != reflect.Func {
		return nil
	}
	for i, a := range n.Args {
		var in xreflect.Type
		switch last := t.NumIn() - 1; {
		case t.IsVariadic() && i >= last:
			in = t.In(last).Elem()
		case i <= last:
			in = t.In(i)
		}
		if tr := k.wants(a, kindOf(in)); tr != nil {
			return tr
		}
	}
	return nil
}

// returns checks what a function returns.
func (k *checker) returns(t *ast.FuncType, body *ast.BlockStmt) (found *trap) {
	if body == nil || t.Results == nil {
		return nil
	}
	var kinds []string
	for _, f := range t.Results.List {
		for range max(1, len(f.Names)) {
			kinds = append(kinds, k.typeKind(f.Type))
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if _, inner := n.(*ast.FuncLit); inner || found != nil {
			return false
		}
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == len(kinds) {
			for i, v := range r.Results {
				if found == nil {
					found = k.wants(v, kinds[i])
				}
			}
		}
		return true
	})
	return found
}
