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
	lineName   = hidden + "line"
	secretName = hidden + "secret"
)

// rewrite changes a cell where the interpreter would do other than Go: a panic in a
// goroutine would end the process, and range over a number is unknown to it.
func (s *Session) rewrite(nodes []ast.Node) {
	r := rewriter{s: s, declared: map[string]bool{}}
	for _, n := range nodes {
		ast.Inspect(n, r.declares)
	}
	for i, n := range nodes {
		if st, ok := n.(ast.Stmt); ok {
			nodes[i] = r.stmt(st)
		}
		ast.Inspect(nodes[i], r.node)
	}
}

// rewriter changes one cell. It knows of the names declared in it whether all that declares them
// makes them an int.
type rewriter struct {
	s        *Session
	declared map[string]bool
}

// declares notes the names that a node declares.
func (r rewriter) declares(n ast.Node) bool {
	note := func(e ast.Expr, isInt bool) {
		if id, ok := e.(*ast.Ident); ok {
			was, known := r.declared[id.Name]
			r.declared[id.Name] = isInt && (was || !known)
		}
	}
	several := func(ids []*ast.Ident, typ ast.Expr, values []ast.Expr) {
		t, _ := typ.(*ast.Ident)
		for i, id := range ids {
			note(id, t != nil && t.Name == "int" || typ == nil && len(values) == len(ids) && intLiteral(values[i]))
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, e := range n.Lhs {
			if n.Tok == token.DEFINE {
				note(e, len(n.Lhs) == len(n.Rhs) && intLiteral(n.Rhs[i]))
			}
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			note(n.Key, false)
			note(n.Value, false)
		}
	case *ast.ValueSpec:
		several(n.Names, n.Type, n.Values)
	case *ast.Field:
		several(n.Names, n.Type, nil)
	case *ast.FuncDecl:
		note(n.Name, false)
	}
	return true
}

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
	case *ast.RangeStmt:
		r.loop(n)
	case *ast.ForStmt:
		r.loop(n)
	case *ast.AssignStmt:
		if len(n.Lhs) == len(n.Rhs) {
			r.single(n.Rhs)
		}
	case *ast.ValueSpec:
		if len(n.Names) == len(n.Values) {
			r.single(n.Values)
		}
	case *ast.CallExpr:
		r.single(n.Args)
	}
	return true
}

func (r rewriter) list(l []ast.Stmt) {
	for i, st := range l {
		l[i] = r.stmt(st)
	}
}

// loop gives the iterations of a loop variables of their own, or says that they have none.
func (r rewriter) loop(n ast.Stmt) {
	if id := ownVariables(n); id != nil {
		p := r.s.ir.Comp.Fileset.Position(id.NamePos)
		r.s.out.write(stderr, fmt.Appendf(nil, "line %d: the iterations of the loop share the variable %s, which a function or a pointer keeps and the loop's body changes: "+
			"unlike in Go, all of them see its last value; copy it (own := %s) in the body\n", p.Line, id.Name, id.Name))
	}
}

// single makes calls of Input and Password give the line alone.
func (r rewriter) single(values []ast.Expr) {
	for _, v := range values {
		call, ok := v.(*ast.CallExpr)
		if !ok {
			continue
		}
		id, ok := call.Fun.(*ast.Ident)
		if _, own := r.declared["Input"]; ok && id.Name == "Input" && !own {
			call.Fun = &ast.Ident{Name: lineName, NamePos: id.NamePos}
		}
		if _, own := r.declared["Password"]; ok && id.Name == "Password" && !own {
			call.Fun = &ast.Ident{Name: secretName, NamePos: id.NamePos}
		}
	}
}

// stmt turns for i := range 10 into for k, n := 0, 10; k < n; k++ { i := k, and select {} into a
// call that waits.
func (r rewriter) stmt(st ast.Stmt) ast.Stmt {
	if w, ok := st.(*ast.SelectStmt); ok && len(w.Body.List) == 0 { // the interpreter would not wait
		return &ast.ExprStmt{X: &ast.CallExpr{Fun: &ast.Ident{Name: waitName, NamePos: w.Select}, Lparen: w.Select, Rparen: w.Select}}
	}
	n, ok := st.(*ast.RangeStmt)
	if !ok || n.Value != nil || n.Tok == token.ASSIGN || !r.isInt(n.X) {
		return st
	}
	id := func(name string) *ast.Ident { return &ast.Ident{Name: name, NamePos: n.For} }
	const count, end = hidden + "i", hidden + "n"
	zero := &ast.BasicLit{Kind: token.INT, Value: "0", ValuePos: n.For}
	body := n.Body
	if i, ok := n.Key.(*ast.Ident); ok && i.Name != "_" {
		own := &ast.AssignStmt{Lhs: []ast.Expr{id(i.Name)}, Tok: token.DEFINE, TokPos: n.For, Rhs: []ast.Expr{id(count)}}
		body = &ast.BlockStmt{Lbrace: body.Lbrace, List: append([]ast.Stmt{own}, body.List...), Rbrace: body.Rbrace}
	}
	return &ast.ForStmt{
		For:  n.For,
		Init: &ast.AssignStmt{Lhs: []ast.Expr{id(count), id(end)}, Tok: token.DEFINE, TokPos: n.For, Rhs: []ast.Expr{zero, n.X}},
		Cond: &ast.BinaryExpr{X: id(count), Op: token.LSS, OpPos: n.For, Y: id(end)},
		Post: &ast.IncDecStmt{X: id(count), Tok: token.INC, TokPos: n.For},
		Body: body,
	}
}

// isInt reports whether an expression is known to be an int. A name of the cell that the session
// knows too must be an int in both.
func (r rewriter) isInt(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok {
		return intLiteral(e)
	}
	isInt, declared := r.declared[id.Name]
	if declared && !isInt {
		return false
	}
	sym := r.s.ir.Comp.TryResolve(id.Name)
	if sym == nil {
		return declared
	}
	return sym.Type != nil && sym.Type.Kind() == reflect.Int
}

// intLiteral reports whether an expression is an int by itself.
func intLiteral(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.INT
	case *ast.ParenExpr:
		return intLiteral(e.X)
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.Ident)
		return ok && (f.Name == "len" || f.Name == "cap")
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

// ownVariables gives each iteration of a loop variables of its own where a function literal or a pointer keeps
// them, as Go does since 1.22: the interpreter has one for all iterations. It reports the variable
// of a loop for which that cannot be done, since its body changes what the next iteration starts from.
func ownVariables(st ast.Stmt) (shared *ast.Ident) {
	var names []*ast.Ident
	var body *ast.BlockStmt
	counted := false
	switch st := st.(type) {
	case *ast.RangeStmt:
		if st.Tok != token.DEFINE {
			return nil
		}
		for _, e := range []ast.Expr{st.Key, st.Value} {
			if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
				names = append(names, id)
			}
		}
		body = st.Body
	case *ast.ForStmt:
		init, ok := st.Init.(*ast.AssignStmt)
		if !ok || init.Tok != token.DEFINE {
			return nil
		}
		for _, e := range init.Lhs {
			if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
				names = append(names, id)
			}
		}
		body, counted = st.Body, true
	default:
		return nil
	}
	var own []*ast.Ident
	for _, id := range names {
		if !kept(body, id.Name) {
			continue
		}
		if counted && changed(body, id.Name) {
			shared = id
			continue
		}
		own = append(own, id)
	}
	if len(own) == 0 {
		return shared
	}
	copies := &ast.AssignStmt{Tok: token.DEFINE, TokPos: body.Lbrace}
	for _, id := range own {
		copies.Lhs = append(copies.Lhs, &ast.Ident{Name: id.Name, NamePos: body.Lbrace})
		copies.Rhs = append(copies.Rhs, &ast.Ident{Name: id.Name, NamePos: body.Lbrace})
	}
	body.List = append([]ast.Stmt{copies}, body.List...)
	return shared
}

// kept reports whether a function literal in the body uses a variable, or its address is taken.
func kept(body ast.Node, name string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			found = found || uses(n.Body, name)
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && uses(n.X, name)
		}
		return !found
	})
	return found
}

// uses reports whether a name stands in a node other than behind a dot.
func uses(node ast.Node, name string) (found bool) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			found = found || uses(n.X, name)
			return false
		case *ast.Ident:
			found = found || n.Name == name
		}
		return !found
	})
	return found
}

// changed reports whether something in the body may assign to a variable.
func changed(body ast.Node, name string) (found bool) {
	is := func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && id.Name == name
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				found = found || n.Tok != token.DEFINE && is(e)
			}
		case *ast.IncDecStmt:
			found = found || is(n.X)
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && is(n.X)
		case *ast.RangeStmt:
			found = found || n.Tok == token.ASSIGN && (is(n.Key) || is(n.Value))
		}
		return !found
	})
	return found
}
