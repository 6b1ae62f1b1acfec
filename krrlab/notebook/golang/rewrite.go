package golang

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"runtime/debug"
	"strings"
)

// Names of functions that rewritten cells call; completion does not offer them.
const (
	hidden     = "krrlab_"
	goName     = hidden + "go"
	caughtName = hidden + "caught"
	waitName   = hidden + "wait"
)

// rewrite changes a cell where the interpreter would do other than Go: a panic in a
// goroutine would end the process, and range over a number is unknown to it.
func (s *Session) rewrite(nodes []ast.Node) {
	r := rewriter{s: s}
	for i, n := range nodes {
		if st, ok := n.(ast.Stmt); ok {
			nodes[i] = r.stmt(st)
		}
		ast.Inspect(nodes[i], r.node)
	}
}

type rewriter struct{ s *Session }

func (r rewriter) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BlockStmt:
		r.list(n.List)
	case *ast.CaseClause:
		r.list(n.Body)
	case *ast.CommClause:
		r.list(n.Body)
	case *ast.LabeledStmt:
		n.Stmt = r.stmt(n.Stmt)
	case *ast.GoStmt:
		r.goStmt(n)
	}
	return true
}

func (r rewriter) list(l []ast.Stmt) {
	for i, st := range l {
		l[i] = r.stmt(st)
	}
}

// stmt turns for i := range 10 into for i, n := 0, 10; i < n; i++, and select {} into a call
// that waits.
func (r rewriter) stmt(st ast.Stmt) ast.Stmt {
	if w, ok := st.(*ast.SelectStmt); ok && len(w.Body.List) == 0 { // the interpreter would not wait
		return &ast.ExprStmt{X: &ast.CallExpr{Fun: &ast.Ident{Name: waitName, NamePos: w.Select}, Lparen: w.Select, Rparen: w.Select}}
	}
	n, ok := st.(*ast.RangeStmt)
	if !ok || n.Value != nil || n.Tok == token.ASSIGN || !r.isInt(n.X) {
		return st
	}
	i, ok := n.Key.(*ast.Ident)
	if !ok || i.Name == "_" {
		i = ast.NewIdent(hidden + "i")
	}
	end := ast.NewIdent(hidden + "n")
	id := func(x *ast.Ident) *ast.Ident { return &ast.Ident{Name: x.Name, NamePos: n.For} }
	zero := &ast.BasicLit{Kind: token.INT, Value: "0", ValuePos: n.For}
	return &ast.ForStmt{
		For:  n.For,
		Init: &ast.AssignStmt{Lhs: []ast.Expr{id(i), id(end)}, Tok: token.DEFINE, TokPos: n.For, Rhs: []ast.Expr{zero, n.X}},
		Cond: &ast.BinaryExpr{X: id(i), Op: token.LSS, OpPos: n.For, Y: id(end)},
		Post: &ast.IncDecStmt{X: id(i), Tok: token.INC, TokPos: n.For},
		Body: n.Body,
	}
}

// isInt reports whether an expression is known to be an int.
func (r rewriter) isInt(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.INT
	case *ast.ParenExpr:
		return r.isInt(e.X)
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.Ident)
		return ok && (f.Name == "len" || f.Name == "cap")
	case *ast.Ident:
		sym := r.s.ir.Comp.TryResolve(e.Name)
		return sym != nil && sym.Type != nil && sym.Type.Kind() == reflect.Int
	}
	return false
}

// goStmt makes a goroutine catch its panics: in the body of a function literal, else by
// a call through goCall.
func (r rewriter) goStmt(n *ast.GoStmt) {
	call := n.Call
	switch f := call.Fun.(type) {
	case *ast.FuncLit:
		nodes := r.s.ir.Comp.ParseBytes([]byte(fmt.Sprintf("defer func() { if r := recover(); r != nil { %s(r) } }()", caughtName)))
		if len(nodes) == 1 {
			if st, ok := nodes[0].(ast.Stmt); ok {
				f.Body.List = append([]ast.Stmt{st}, f.Body.List...)
			}
		}
		return
	case *ast.Ident:
		if builtins[f.Name] {
			return
		}
	}
	if call.Ellipsis.IsValid() {
		return
	}
	call.Args = append([]ast.Expr{call.Fun}, call.Args...)
	call.Fun = &ast.Ident{Name: goName, NamePos: n.Go}
}

// builtins are functions of the language that can stand in a go statement.
var builtins = map[string]bool{"close": true, "copy": true, "delete": true, "panic": true, "print": true, "println": true}

// goCall calls f as a goroutine of a cell: a panic becomes a message.
func (s *Session) goCall(f any, args ...any) {
	defer func() {
		if r := recover(); r != nil {
			s.caught(r)
		}
	}()
	v := reflect.ValueOf(f)
	t := v.Type()
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		want := reflect.TypeFor[any]()
		switch last := t.NumIn() - 1; {
		case t.IsVariadic() && i >= last:
			want = t.In(last).Elem()
		case i <= last:
			want = t.In(i)
		}
		in[i] = reflect.ValueOf(a)
		if a == nil {
			in[i] = reflect.Zero(want)
		} else if !in[i].Type().AssignableTo(want) && in[i].CanConvert(want) {
			in[i] = in[i].Convert(want)
		}
	}
	v.Call(in)
}

// caught says that a goroutine of a cell ended by a panic.
func (s *Session) caught(r any) {
	text := fmt.Sprintf("a goroutine of the cell panicked: %s\n", panicText(strings.TrimSpace(fmt.Sprint(r))))
	if err, ok := r.(error); ok && strings.HasPrefix(err.Error(), "runtime error: ") {
		text = fmt.Sprintf("a goroutine of the cell panicked: %v\n%s", err, shortStack(string(debug.Stack())))
	}
	s.out.write(stderr, []byte(text))
}

// shortStack returns the lines of a stack that are of compiled packages.
func shortStack(stack string) string {
	var out []string
	for line := range strings.Lines(stack) {
		if strings.HasPrefix(line, "\t") || strings.Contains(line, "gomacro") || strings.HasPrefix(line, "runtime") || strings.HasPrefix(line, "reflect.") ||
			strings.HasPrefix(line, "panic(") || strings.HasPrefix(line, "goroutine ") || strings.Contains(line, "notebook/golang") || strings.TrimSpace(line) == "" {
			continue
		}
		out = append(out, "  in "+line)
	}
	return strings.Join(out, "")
}
