package engine

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// prepareStatements rewrites and type-checks a unit (a separately compiled piece of a cell) that consists of
// statements. It inserts a call of stepFunc before each statement and, with showLast, passes a final expression to
// showFunc. The variables that the statements define become variables of the session (see promoteToSession).
func (e *Engine) prepareStatements(c *Cell, file *ast.File, visible namespace, display lastDisplay) (*unit, error) {
	fn := file.Decls[0].(*ast.FuncDecl)
	stmts := fn.Body.List
	fn.Body.List = nil
	var lines []int
	var showCall *ast.CallExpr // the call that shows the last expression, or nil
	for i, stmt := range stmts {
		pos := stmt.Pos()
		lines = append(lines, e.fset.Position(pos).Line)
		step := callStmt(stepFunc, pos, &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(i), ValuePos: pos})
		if exprStmt, ok := stmt.(*ast.ExprStmt); ok {
			isShown := display == showLast && i+1 == len(stmts) && !isPrintCall(exprStmt.X, visible)
			if stmt = useExpression(exprStmt); isShown {
				stmt = showExpression(exprStmt)
				showCall = stmt.(*ast.ExprStmt).X.(*ast.CallExpr)
				c.EndsWithCall = stmt != exprStmt && isCall(exprStmt.X)
			}
		}
		fn.Body.List = append(fn.Body.List, step, stmt)
	}
	u, err := e.checkUnit(file, visible)
	if err != nil && showCall != nil && strings.Contains(err.Error(), "used as value") {
		// The last expression is a call without results. Nothing can be shown, so the statement stays as it was
		// written.
		fn.Body.List[len(fn.Body.List)-1], showCall = stmts[len(stmts)-1], nil
		u, err = e.checkUnit(file, visible)
	}
	if err != nil {
		return nil, err
	}
	if showCall != nil {
		c.shownTypes = u.argumentTypes(showCall)
	}
	c.recordUnreadErrors(u, fn)
	u.lines = lines
	e.promoteToSession(u, fn, visible)
	return u, nil
}

// showExpression returns a statement that shows the value of an expression. parse has already put a list of expressions
// into a call of showFunc.
func showExpression(stmt *ast.ExprStmt) ast.Stmt {
	if call, ok := stmt.X.(*ast.CallExpr); ok && isName(call.Fun, showFunc) {
		return stmt
	}
	return callStmt(showFunc, stmt.Pos(), stmt.X)
}

// useExpression returns a statement that only uses the value of an expression, as a value without a use is a compile
// error.
func useExpression(stmt *ast.ExprStmt) ast.Stmt {
	if isCall(stmt.X) {
		return stmt
	}
	return &ast.AssignStmt{Lhs: []ast.Expr{&ast.Ident{Name: "_", NamePos: stmt.Pos()}}, Tok: token.ASSIGN,
		TokPos: stmt.Pos(), Rhs: []ast.Expr{stmt.X}}
}

// argumentTypes returns the types of the arguments of a call. If an argument is a call with several results, it returns
// the types of all of them.
func (u *unit) argumentTypes(call *ast.CallExpr) (out []types.Type) {
	for _, x := range call.Args {
		switch t := u.src.info.TypeOf(ast.Unparen(x)).(type) {
		case *types.Tuple:
			for v := range t.Variables() {
				out = append(out, v.Type())
			}
		default:
			out = append(out, t)
		}
	}
	return out
}

// promoteToSession turns the variables that the statements of fn define with := into package-level variables, which
// later cells can use. If a visible variable has the same name and type, that variable is assigned instead.
func (e *Engine) promoteToSession(u *unit, fn *ast.FuncDecl, visible namespace) {
	info := u.src.info
	sessionVar := map[types.Object]*types.Var{}
	decl := &ast.GenDecl{Tok: token.VAR}
	for i, stmt := range fn.Body.List {
		assign, ok := stmt.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			continue
		}
		assign.Tok = token.ASSIGN
		for _, x := range assign.Lhs {
			ident := x.(*ast.Ident)
			old, ok := info.Defs[ident].(*types.Var)
			if !ok || ident.Name == "_" {
				continue
			}
			v := u.recordRedeclared(old, visible)
			if v == nil {
				v = types.NewVar(ident.Pos(), u.pkg, ident.Name, old.Type())
				u.pkg.Scope().Insert(v)
				name := ast.NewIdent(ident.Name)
				info.Defs[name] = v
				decl.Specs = append(decl.Specs, &ast.ValueSpec{Names: []*ast.Ident{name}})
			}
			delete(info.Defs, ident)
			info.Uses[ident] = v
			sessionVar[old] = v
			visible.bind(ident.Name, v)
			step := i / 2 // a call of stepFunc precedes every statement
			u.declaredNames = append(u.declaredNames, declaredName{ident.Name, v, step})
		}
	}
	for ident, obj := range info.Uses {
		if v := sessionVar[obj]; v != nil {
			info.Uses[ident] = v
		}
	}
	u.redeclared = nil // the statements assign the earlier variables themselves, so build has nothing to connect
	if decl.Specs != nil {
		u.src.files[0].Decls = append(u.src.files[0].Decls, decl)
	}
}

// UnreadError is a non-nil error that a top-level statement of a cell assigned to a variable and that no later
// statement reads.
type UnreadError struct {
	Name string // name of the variable
	Line int    // line of the assignment
	Err  error
}

// recordUnreadErrors updates c.errorLines with the statements of a unit: it adds error variables that are assigned and
// removes variables that are mentioned afterwards.
func (c *Cell) recordUnreadErrors(u *unit, fn *ast.FuncDecl) {
	for _, stmt := range fn.Body.List {
		ast.Inspect(stmt, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				delete(c.errorLines, id.Name)
			}
			return true
		})
		assign, ok := stmt.(*ast.AssignStmt)
		if !ok {
			continue
		}
		for _, x := range assign.Lhs {
			if t := u.src.info.TypeOf(x); t != nil && types.Identical(t, types.Universe.Lookup("error").Type()) {
				c.errorLines[types.ExprString(x)] = c.engine.fset.Position(x.Pos()).Line
			}
		}
	}
}

// UnreadErrors returns, after the cell has run, the errors that it assigned to variables and never read, in the order
// of their lines.
func (c *Cell) UnreadErrors() (unread []UnreadError) {
	c.engine.ForEachVariable(func(name string, v reflect.Value) {
		if err, ok := v.Interface().(error); ok && c.errorLines[name] > 0 {
			unread = append(unread, UnreadError{name, c.errorLines[name], err})
		}
	})
	slices.SortFunc(unread, func(a, b UnreadError) int { return a.Line - b.Line })
	return unread
}

// isName reports whether x is the given identifier.
func isName(x ast.Expr, name string) bool {
	ident, ok := x.(*ast.Ident)
	return ok && ident.Name == name
}

// isCall reports whether x is a call, or a conversion, which has the same syntax.
func isCall(x ast.Expr) bool {
	_, ok := ast.Unparen(x).(*ast.CallExpr)
	return ok
}

// callStmt returns a statement at pos that calls the function with the given name.
func callStmt(name string, pos token.Pos, args ...ast.Expr) ast.Stmt {
	return &ast.ExprStmt{X: &ast.CallExpr{Fun: &ast.Ident{Name: name, NamePos: pos}, Lparen: pos, Args: args,
		Rparen: pos}}
}

// printName matches the names of functions of package fmt whose results are not worth displaying.
var printName = regexp.MustCompile(`^(Print|Fprint|Scan)`)

// isPrintCall reports whether x is a call of a function of package fmt whose name printName matches.
func isPrintCall(x ast.Expr, visible namespace) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	switch callee := call.Fun.(type) {
	case *ast.SelectorExpr:
		ident, ok := callee.X.(*ast.Ident)
		return ok && visible.imports[ident.Name] == "fmt" && printName.MatchString(callee.Sel.Name)
	case *ast.Ident: // from an import with a dot
		obj := visible.names[callee.Name]
		return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == "fmt" && printName.MatchString(callee.Name)
	}
	return false
}

// Functions that the rewritten statements of a cell call.
const (
	stepFunc = ReservedPrefix + "step" // called before each statement, with its index
	showFunc = ReservedPrefix + "show" // called with the values to display
)
