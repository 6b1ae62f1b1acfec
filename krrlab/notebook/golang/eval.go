package golang

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"reflect"
	"strings"

	"github.com/cosmos72/gomacro/base"
	basereflect "github.com/cosmos72/gomacro/base/reflect"
	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/gls"
	"github.com/cosmos72/gomacro/xreflect"

	"github.com/krrlab/lab/krrlab/notebook/display"
)

// Run executes a cell. name says which it is in messages: Cell 5.
func (s *Session) Run(name, code string, out Output) Result {
	c := &cell{name: name, lines: strings.Split(code, "\n"), out: out, done: make(chan struct{}), halt: make(chan struct{}), gone: make(chan struct{})}
	result := make(chan Result, 1)
	select {
	case s.work <- func() { s.runCell(c, result) }:
	case <-s.quit:
		return Result{}
	}
	select {
	case r := <-result:
		return r
	case <-c.gone:
		return Result{Err: c.failure(interrupted, "the cell was interrupted and left behind", 0)}
	}
}

// runCell runs a cell in the goroutine that is for it.
func (s *Session) runCell(c *cell, result chan<- Result) {
	var res Result
	returned := false
	c.ir.Store(s.ir)
	c.goid = gls.GoID()
	s.out.begin(c.out, s.max)
	c.ctx = s.renewContext()
	s.running.Store(c)
	go s.guard(c)
	defer func() {
		if c.end() {
			s.running.Store(nil)
			s.endProgress()
			s.out.end()
			if returned {
				res = s.ended(c, res)
			} else {
				res = Result{Err: c.failure(panicError, "runtime.Goexit ended the goroutine of the cell", c.last)}
			}
			if !returned || c.deep.Load() { // deep: the goroutine would keep its huge stack
				s.replace(s.ir)
			}
			result <- res
		}
		close(c.done)
	}()
	res = s.segments(c)
	returned = true
}

// ended makes Interrupted of however a cell ended that an interrupt has met, so that the cells
// behind it are dropped. What there is of a value is shown.
func (s *Session) ended(c *cell, res Result) Result {
	if c.hits.Load() == 0 {
		return res
	}
	s.ir.PrepareEnv().Run.Signals = base.Signals{} // a signal that came too late is not the next cell's
	if res.Value != nil {
		s.out.show(*res.Value)
	}
	switch {
	case res.Err == nil:
		return Result{Err: c.failure(interrupted, "the cell was interrupted", c.last)}
	case res.Err.Name == interrupted, res.Err.Name == panicError:
		return Result{Err: res.Err}
	}
	return Result{Err: c.failure(interrupted, "the cell was interrupted: "+res.Err.Value, 0)}
}

// Eval returns the value of an expression as text and in its other forms, as
// user_expressions asks for.
func (s *Session) Eval(expr string, out Output) Result { return s.Run("expression", expr, out) }

// segments runs the parts of a cell: commands, and the Go between them.
func (s *Session) segments(c *cell) (res Result) {
	parts, err := split(c.lines)
	if err != nil {
		return Result{Err: c.failure("SyntaxError", err.Error(), 0)}
	}
	for _, p := range parts {
		p = s.asCode(p)
		if c.state.Load() != isRunning || c.hits.Load() > 0 { // left behind: the session is another cell's
			return res
		}
		switch {
		case p.command != "":
			next, err := s.command(c, p.command)
			if err != nil {
				return Result{Err: c.failure("CommandError", err.Error(), p.line)}
			}
			res = Result{Next: next}
		default:
			stop := s.timed(p.timed)
			if res = s.goCode(c, p); c.state.Load() != isLeft {
				stop()
			}
		}
		if res.Err != nil {
			return res
		}
	}
	return res
}

// goCode runs lines of Go.
func (s *Session) goCode(c *cell, p part) (res Result) {
	before := s.save()
	compiled, returned := false, false
	defer func() {
		if r := recover(); !returned && c.end() { // without r it is runtime.Goexit
			res = Result{Err: s.explain(c, r, compiled)}
			s.restore(c, before, compiled)
		}
	}()
	res = s.statements(c, p, &compiled)
	returned = true
	return res
}

// statements checks, compiles and executes lines of Go.
func (s *Session) statements(c *cell, p part, compiled *bool) Result {
	src := strings.Repeat("\n", p.line-1) + p.code
	if err := s.prescan(src); err != nil {
		return Result{Err: c.failure(err.name, err.text, err.line)}
	}
	comp := s.ir.Comp
	comp.Filepath, comp.Line = c.name, 0
	nodes := s.autoImport(program(comp.ParseBytes([]byte(src))))
	if err := s.check(nodes); err != nil {
		return Result{Err: c.failure(err.name, err.text, err.line)}
	}
	if err := s.imports(nodes); err != nil {
		return Result{Err: c.failure(compileError, oneLine(err.Error()), 0)}
	}
	s.rewrite(nodes)
	if len(nodes) == 0 {
		return Result{}
	}
	steps := s.compile(nodes)
	*compiled = true
	vals, types, ok := s.exec(c, steps)
	if !ok || !shown(nodes, src) {
		return Result{}
	}
	last := nodes[len(nodes)-1]
	if isNil(last) { // which has no type
		d := display.MakeData(display.MIMETypeText, "nil")
		return Result{Value: &d}
	}
	if receives(last) { // the interpreter gives the second value even where it is not asked for
		vals, types = vals[:1], types[:1]
	}
	return s.result(c, vals, types, calls(last))
}

// program adds a call of main where a cell is a program, as it is copied from a file: declarations alone.
func program(nodes []ast.Node) []ast.Node {
	var main *ast.FuncDecl
	for _, n := range nodes {
		if _, decl := n.(ast.Decl); !decl {
			return nodes
		}
		if f, ok := n.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "main" && f.Type.Params.NumFields() == 0 && f.Type.Results.NumFields() == 0 {
			main = f
		}
	}
	if main == nil {
		return nodes
	}
	return append(nodes, &ast.ExprStmt{X: &ast.CallExpr{Fun: &ast.Ident{Name: "main", NamePos: main.Name.NamePos}, Lparen: main.Name.NamePos, Rparen: main.Name.NamePos}})
}

// isNil reports whether a statement is nil.
func isNil(n ast.Node) bool {
	if st, ok := n.(*ast.ExprStmt); ok {
		n = st.X
	}
	id, ok := n.(*ast.Ident)
	return ok && id.Name == "nil"
}

// receives reports whether a statement is <-ch.
func receives(n ast.Node) bool {
	if st, ok := n.(*ast.ExprStmt); ok {
		n = st.X
	}
	u, ok := n.(*ast.UnaryExpr)
	return ok && u.Op == token.ARROW
}

// calls reports whether a statement is f(x).
func calls(n ast.Node) bool {
	if st, ok := n.(*ast.ExprStmt); ok {
		n = st.X
	}
	_, ok := n.(*ast.CallExpr)
	return ok
}

// state is what a failed cell must not change.
type state struct {
	binds          names
	types          map[string]xreflect.Type
	bindNum, intNo int
}

func (s *Session) save() state {
	c := s.ir.Comp
	return state{maps.Clone(c.Binds), maps.Clone(c.Types), c.BindNum, c.IntBindNum}
}

// restore undoes what a failed cell left half done: everything if it did not compile, else
// what the statement that failed and those behind it declare.
func (s *Session) restore(cell *cell, st state, compiled bool) {
	c, env := s.ir.Comp, s.ir.PrepareEnv()
	c.Code.Clear()
	c.Loop, c.Func, c.Labels = nil, nil, nil
	run := env.Run
	run.ExecFlags, run.PanicFun, run.Panic, run.DeferOfFun, run.InstallDefer = 0, nil, nil, nil, nil
	run.Interrupt, run.CurrEnv, run.Signals = nil, nil, base.Signals{}
	if !compiled {
		c.Binds, c.Types = st.binds, st.types
		// The slots stay taken: a slot that is given out again may be of another kind.
		return
	}
	before := cell.names.Load()
	if before == nil {
		return
	}
	now := c.Binds
	c.Binds = *before
	for name, b := range now { // functions that stand before what failed
		old, i := c.Binds[name], b.Desc.Index()
		if b.Desc.Class() == fast.FuncBind && (old == nil || old.Desc.Index() != i) && i < len(env.Vals) && env.Vals[i].IsValid() {
			c.Binds[name] = b
		}
	}
}

// shown reports whether the value of the last statement is shown: it is that of an
// expression, without a semicolon behind it, and not of a function that prints.
func shown(nodes []ast.Node, src string) bool {
	if len(nodes) == 0 {
		return false
	}
	last := nodes[len(nodes)-1]
	if st, ok := last.(*ast.ExprStmt); ok {
		last = st.X
	}
	e, ok := last.(ast.Expr)
	if !ok || strings.HasSuffix(strings.TrimSpace(src), ";") {
		return false
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return true
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	x, ok := sel.X.(*ast.Ident)
	return !ok || x.Name != "fmt" || !strings.HasPrefix(sel.Sel.Name, "Print") && !strings.HasPrefix(sel.Sel.Name, "Fprint") && !strings.HasPrefix(sel.Sel.Name, "Scan")
}

// result turns the values of the last expression into what is shown. If the last of
// several is an error, or the only one of a call is, that is how the cell ended.
func (s *Session) result(c *cell, vals []xreflect.Value, types []xreflect.Type, call bool) (res Result) {
	var shows []any
	var shownTypes []xreflect.Type
	for i, v := range vals {
		x := basereflect.ValueInterface(v)
		if i == len(vals)-1 && (call || len(vals) > 1) && isErrorType(types[i]) {
			if err, ok := x.(error); ok && err != nil {
				res.Err = c.failure("Error", err.Error(), 0)
			}
			continue
		}
		if x == nil && (res.Err != nil || len(vals) == 1 && types[i] == nil) {
			continue
		}
		shows, shownTypes = append(shows, x), append(shownTypes, types[i])
	}
	if len(shows) == 0 {
		return res
	}
	if res.Err != nil && allZero(shows) {
		return res
	}
	d := s.render(shows[0], shownTypes[0])
	if len(shows) > 1 {
		var text []string
		for i, x := range shows {
			text = append(text, fmt.Sprint(s.render(x, shownTypes[i]).Data[display.MIMETypeText]))
		}
		d = display.MakeData(display.MIMETypeText, strings.Join(text, ", "))
	}
	if res.Err != nil { // what there is of a value is worth seeing
		s.out.show(d)
		return res
	}
	res.Value = &d
	return res
}

func isErrorType(t xreflect.Type) bool {
	return t != nil && t.Kind() == reflect.Interface && t.Name() == "error"
}

func allZero(vs []any) bool {
	for _, v := range vs {
		if r := reflect.ValueOf(v); r.IsValid() && !r.IsZero() {
			return false
		}
	}
	return true
}
