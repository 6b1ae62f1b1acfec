package engine

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Cell is the type-checked code of a notebook cell, ready to run.
type Cell struct {
	e            *Engine
	units        []*unit
	shownTypes   []types.Type   // types of the displayed values, those of the last expression
	EndsWithCall bool           // the last expression is a call
	errorLines   map[string]int // lines that assign errors never read, by variable
	sections     []section      // the sections of the units
	finalView    view           // names and imports that are visible when the cell has ended
}

// Value is a value of the last expression of a cell, with its type as declared in the cell.
type Value struct {
	Value any
	Type  types.Type
}

// view holds the names and imports that are visible to a unit.
type view struct {
	names   map[string]types.Object // objects by name
	imports map[string]string       // package paths by name
}

// clone returns a copy that can be changed independently.
func (v view) clone() view { return view{maps.Clone(v.names), maps.Clone(v.imports)} }

// bind makes name denote the object o.
func (v view) bind(name string, o types.Object) {
	v.names[name] = o
	delete(v.imports, name)
}

// Compile type-checks a whole cell without executing any of it. name is used in error positions. If the cell is a
// program, Compile appends a call of main.
func (e *Engine) Compile(name, code string) (c *Cell, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer rescue(&err)
	items, hideResult, err := e.splitItems(name, code)
	if err != nil {
		return nil, err
	}
	c, err = e.compile(name, code, items, hideResult)
	// As in a Go file, a declaration may follow its first use. Try again with declarations first.
	if typeErr := (types.Error{}); errors.As(err, &typeErr) &&
		(strings.Contains(typeErr.Msg, "undefined") || strings.Contains(typeErr.Msg, "non-local type")) {
		hideResult = hideResult || items[len(items)-1].kind != statement
		slices.SortStableFunc(items, func(a, b cellItem) int { return b.hoistOrder - a.hoistOrder })
		inOrder, orderErr := c, err
		c, err = e.compile(name, code, items, hideResult)
		// The new order is at fault if the name is known in the order of the cell.
		if errors.As(err, &typeErr) && inOrder.finalView.names[strings.TrimPrefix(typeErr.Msg, "undefined: ")] != nil {
			err = orderErr
		}
	}
	if err == nil && len(items) > 0 && c.isProgram() {
		code += callMain
		items = append(items, cellItem{start: len(code) - len(callMain) + 1, end: len(code)})
		return e.compile(name, code, items, true)
	}
	return c, err
}

// callMain is appended to a cell that is a program.
const callMain = "\nmain()"

// compile checks the given items of a cell, in order. If hideResult is set, the value of the last expression is not
// displayed. After an error, the final view of the cell is that of the last unit without one.
func (e *Engine) compile(name, code string, items []cellItem, hideResult bool) (c *Cell, err error) {
	visible := e.view.clone()
	c = &Cell{e: e, errorLines: map[string]int{}, sections: groupItems(items), finalView: visible}
	for i, section := range c.sections {
		file, err := e.parse(name, code, section)
		if err != nil {
			return c, err
		}
		dotImported := map[string]types.Object{}
		if err := e.resolveImports(file, visible, dotImported); err != nil {
			return c, err
		}
		if section.kind == importDecl {
			c.units = append(c.units, &unit{imports: maps.Clone(visible.imports), dotImported: dotImported})
			continue
		}
		files := []*ast.File{file}
		if section.kind == statement {
			files = splitRedefinitions(file)
		}
		for j, file := range files {
			e.addImplicitImports(file, visible)
			ensureDefers(file)
			var u *unit
			if section.kind == declaration {
				u, err = e.checkDeclarations(file, visible)
			} else {
				isLast := i+1 == len(c.sections) && j+1 == len(files)
				u, err = e.checkStatements(c, file, visible, isLast && !hideResult)
			}
			if err != nil {
				return c, err
			}
			c.units = append(c.units, u)
		}
	}
	return c, nil
}

// rescue turns a panic of go/types, ssa or ixgo into an error of the cell. It must be deferred.
func rescue(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("this cell cannot be compiled: %v", r)
	}
}

// isProgram reports whether the cell consists of declarations only and declares a function main without parameters.
// Such a cell runs main.
func (c *Cell) isProgram() bool {
	for _, u := range c.units {
		if u.lines != nil {
			return false
		}
	}
	u := c.units[len(c.units)-1]
	if u.pkg == nil {
		return false
	}
	f, ok := u.pkg.Scope().Lookup("main").(*types.Func)
	return ok && f.Signature().Params().Len() == 0
}

// resolveImports removes the import declarations from a file and adds the imported packages to visible. The exported
// objects of packages imported with a dot are also added to dotImported.
func (e *Engine) resolveImports(file *ast.File, visible view, dotImported map[string]types.Object) error {
	var missing MissingPackagesError
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		pkg, err := importer{e}.Import(path)
		if notFound := (*MissingPackagesError)(nil); errors.As(err, &notFound) {
			missing.Line = cmp.Or(missing.Line, e.fset.Position(spec.Pos()).Line)
			missing.Paths = append(missing.Paths, notFound.Paths...)
			continue
		}
		if err != nil {
			return types.Error{Fset: e.fset, Pos: spec.Pos(), Msg: err.Error()}
		}
		bindImport(pkg, spec.Name, visible, dotImported)
	}
	file.Imports, file.Decls = nil, slices.DeleteFunc(file.Decls, func(d ast.Decl) bool {
		g, ok := d.(*ast.GenDecl)
		return ok && g.Tok == token.IMPORT
	})
	if missing.Paths != nil {
		return &missing
	}
	return nil
}

// bindImport adds an imported package to visible. name is the name in the import declaration, or nil. The exported
// objects of a package that is imported with a dot are also added to dotImported.
func bindImport(pkg *types.Package, name *ast.Ident, visible view, dotImported map[string]types.Object) {
	packageName := pkg.Name()
	if name != nil {
		packageName = name.Name
	}
	switch packageName {
	case "_":
	case ".":
		for _, n := range pkg.Scope().Names() {
			if token.IsExported(n) {
				dotImported[n] = pkg.Scope().Lookup(n)
				visible.bind(n, dotImported[n])
			}
		}
	default:
		delete(visible.names, packageName)
		visible.imports[packageName] = ImportPath(pkg)
	}
}

// MissingPackagesError reports imported packages that are neither compiled into the program nor available as source.
type MissingPackagesError struct {
	Paths []string
	Line  int // line of the first such import
}

func (m *MissingPackagesError) Error() string {
	return "not in this kernel: " + strings.Join(m.Paths, ", ")
}

// addImplicitImports adds to visible the packages that a file uses without importing them, as ImplicitImport names
// them.
func (e *Engine) addImplicitImports(file *ast.File, visible view) {
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if ok && visible.names[id.Name] == nil && visible.imports[id.Name] == "" && e.ImplicitImport != nil {
			if path := e.ImplicitImport(id.Name); path != "" {
				visible.imports[id.Name] = path
			}
		}
		return true
	})
}

// checkDeclarations type-checks a unit of declarations and binds the declared names in visible.
func (e *Engine) checkDeclarations(file *ast.File, visible view) (*unit, error) {
	u, err := e.checkUnit(file, visible)
	if err != nil {
		return nil, err
	}
	u.line = e.fset.Position(file.Decls[0].Pos()).Line
	for _, name := range u.pkg.Scope().Names() {
		o := u.pkg.Scope().Lookup(name)
		if v, ok := o.(*types.Var); ok {
			u.recordRedeclared(v, visible)
		}
		visible.bind(name, o)
		u.declaredNames = append(u.declaredNames, declaredName{name, o, 0})
	}
	return u, nil
}

// recordRedeclared returns the earlier variable with the name and type of v and records it in u.redeclared. It returns
// nil if there is none.
func (u *unit) recordRedeclared(v *types.Var, visible view) *types.Var {
	old, ok := visible.names[v.Name()].(*types.Var)
	if !ok || old.Pkg().Path() != mainPath || !types.Identical(old.Type(), v.Type()) {
		return nil
	}
	if u.redeclared == nil {
		u.redeclared = map[string]*types.Var{}
	}
	u.redeclared[v.Name()] = old
	return old
}

// declaredName is a name that a unit declares.
type declaredName struct {
	name   string
	object types.Object
	step   int // index of the declaring statement; 0 for declarations
}

// checkStatements type-checks a unit of statements. It inserts a call of stepFunc before each statement and, if
// showLast is set, passes a final expression to showFunc. Variables that the statements define become variables of the
// session (see sessionVariables).
func (e *Engine) checkStatements(c *Cell, file *ast.File, visible view, showLast bool) (*unit, error) {
	fn := file.Decls[0].(*ast.FuncDecl)
	list := fn.Body.List
	fn.Body.List = nil
	var lines []int
	var showCall *ast.CallExpr // the call that shows the last expression, or nil
	for i, stmt := range list {
		lines = append(lines, e.fset.Position(stmt.Pos()).Line)
		step := callStmt(stepFunc, stmt.Pos(), &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(i), ValuePos: stmt.Pos()})
		if x, ok := stmt.(*ast.ExprStmt); ok {
			isShown := showLast && i+1 == len(list) && !printCall.MatchString(types.ExprString(x.X))
			if stmt = wrapExpression(x, isShown); isShown {
				showCall = stmt.(*ast.ExprStmt).X.(*ast.CallExpr)
				c.EndsWithCall = stmt != x && isCall(x.X)
			}
		}
		fn.Body.List = append(fn.Body.List, step, stmt)
	}
	u, err := e.checkUnit(file, visible)
	if err != nil && showCall != nil && strings.Contains(err.Error(), "used as value") {
		fn.Body.List[len(fn.Body.List)-1], showCall = list[len(list)-1], nil
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
	e.sessionVariables(u, fn, visible)
	return u, nil
}

// wrapExpression returns a statement that shows the value of an expression, or only uses it: a value without a use is a
// compile error. parse has already put a list of expressions into a call of showFunc.
func wrapExpression(stmt *ast.ExprStmt, isShown bool) ast.Stmt {
	call, ok := stmt.X.(*ast.CallExpr)
	switch {
	case isShown && !(ok && isName(call.Fun, showFunc)):
		return callStmt(showFunc, stmt.Pos(), stmt.X)
	case isShown || isCall(stmt.X):
		return stmt
	}
	return &ast.AssignStmt{Lhs: []ast.Expr{&ast.Ident{Name: "_", NamePos: stmt.Pos()}}, Tok: token.ASSIGN,
		TokPos: stmt.Pos(), Rhs: []ast.Expr{stmt.X}}
}

// argumentTypes returns the types of the arguments of a call. A call among the arguments can have several.
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

// sessionVariables turns the variables that the statements of fn define with := into package-level variables, which
// later cells can use. If a visible variable has the same name and type, that variable is assigned instead.
func (e *Engine) sessionVariables(u *unit, fn *ast.FuncDecl, visible view) {
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
			id := x.(*ast.Ident)
			old, ok := info.Defs[id].(*types.Var)
			if !ok || id.Name == "_" {
				continue
			}
			v := u.recordRedeclared(old, visible)
			if v == nil {
				v = types.NewVar(id.Pos(), u.pkg, id.Name, old.Type())
				u.pkg.Scope().Insert(v)
				name := ast.NewIdent(id.Name)
				info.Defs[name] = v
				decl.Specs = append(decl.Specs, &ast.ValueSpec{Names: []*ast.Ident{name}})
			}
			delete(info.Defs, id)
			info.Uses[id] = v
			sessionVar[old] = v
			visible.bind(id.Name, v)
			step := i / 2 // a call of stepFunc precedes every statement
			u.declaredNames = append(u.declaredNames, declaredName{id.Name, v, step})
		}
	}
	for id, o := range info.Uses {
		if v := sessionVar[o]; v != nil {
			info.Uses[id] = v
		}
	}
	u.redeclared = nil
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
				c.errorLines[types.ExprString(x)] = c.e.fset.Position(x.Pos()).Line
			}
		}
	}
}

// UnreadErrors returns, after the cell has run, the errors that it assigned to variables and never read, in the order
// of their lines.
func (c *Cell) UnreadErrors() (out []UnreadError) {
	c.e.ForEachVariable(func(name string, v reflect.Value) {
		if err, ok := v.Interface().(error); ok && c.errorLines[name] > 0 {
			out = append(out, UnreadError{name, c.errorLines[name], err})
		}
	})
	slices.SortFunc(out, func(a, b UnreadError) int { return a.Line - b.Line })
	return out
}

// isName reports whether x is the given identifier.
func isName(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
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

// printCall matches calls of fmt functions whose results are not worth displaying.
var printCall = regexp.MustCompile(`^fmt\.(Print|Fprint|Scan)\w*\(`)

// Statements call these functions: stepFunc with their index, and showFunc with the values to display.
const (
	stepFunc = ReservedPrefix + "at"
	showFunc = ReservedPrefix + "show"
)

// Run executes a cell and returns the values of its last expression. It calls onLine with the line of each statement
// before executing it. Declarations become visible to later cells one by one during execution. If abandoned returns
// true before a statement or at the end of a unit, Run stops with the error Stopped and publishes nothing more.
func (c *Cell) Run(abandoned func() bool, onLine func(line int)) (out []Value, err error) {
	if err := c.e.initializePackages(); err != nil {
		return nil, err
	}
	for _, unit := range c.units {
		if err := c.e.activate(unit); err != nil {
			return nil, err
		}
		if unit.pkg == nil {
			continue
		}
		c.e.publish(unit, -1) // no variables yet
		var shownValues []any
		entry := "init"
		if unit.lines != nil {
			entry = runFunc
		} else {
			onLine(unit.line)
		}
		c.e.current.Store(&execution{goid: GoroutineID(), show: func(vs []any) { shownValues = vs },
			beforeStep: func(step int) {
				if abandoned() {
					panic(Stopped{})
				}
				c.e.publish(unit, step)
				onLine(unit.lines[step])
			}})
		_, err := unit.interp.RunFunc(entry)
		if abandoned() {
			return nil, Stopped{}
		}
		if err != nil {
			return nil, err
		}
		c.e.publish(unit, len(unit.lines)+1) // all names
		for i, v := range shownValues[:min(len(shownValues), len(c.shownTypes))] {
			out = append(out, Value{v, c.shownTypes[i]})
		}
		c.e.release(unit)
	}
	return out, nil
}

// activate makes a unit executable. For a unit of imports, it makes the imported names visible.
func (e *Engine) activate(u *unit) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer rescue(&err)
	maps.Copy(e.view.imports, u.imports)
	if u.pkg == nil {
		for name := range u.imports {
			delete(e.view.names, name)
		}
		for name, o := range u.dotImported {
			e.view.bind(name, o)
		}
		return nil
	}
	return e.build(u)
}

// publish makes the names of a unit visible to later cells: functions, types and constants, and the variables that were
// declared before the given step.
func (e *Engine) publish(u *unit, step int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range u.declaredNames {
		if _, isVar := d.object.(*types.Var); isVar && d.step >= step {
			continue
		}
		if f, ok := d.object.(*types.Func); ok {
			e.replaceFunction(u, f)
		}
		e.view.bind(d.name, d.object)
		e.units[u.pkg] = u
	}
}
