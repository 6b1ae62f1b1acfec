package engine

import (
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

// Cell is code that was checked.
type Cell struct {
	e     *Engine
	units []*unit
	shown []types.Type   // of the values of the last expression that are shown
	Call  bool           // the last expression is a call
	errs  map[string]int // lines that assign errors which none reads, by variable
}

// Value is that of the last expression of a cell, with the type by which the cell knows it.
type Value struct {
	Value any
	Type  types.Type
}

// view is what a unit sees: names and imports.
type view struct {
	names   map[string]types.Object
	imports map[string]string // paths by name
}

func (v view) clone() view { return view{maps.Clone(v.names), maps.Clone(v.imports)} }

// set makes a name mean an object.
func (v view) set(name string, o types.Object) {
	v.names[name] = o
	delete(v.imports, name)
}

// Compile checks a cell as a whole; nothing of it is executed yet.
func (e *Engine) Compile(name, code string) (c *Cell, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer rescue(&err)
	items, closed, err := e.items(name, code)
	if err != nil {
		return nil, err
	}
	c, err = e.compile(name, code, parts(items), closed)
	// As in Go, what is declared may stand behind what uses it.
	if wrong := (types.Error{}); errors.As(err, &wrong) &&
		(strings.Contains(wrong.Msg, "undefined") || strings.Contains(wrong.Msg, "non-local type")) {
		closed = closed || items[len(items)-1].kind != statement
		slices.SortStableFunc(items, func(a, b item) int { return b.hoisted - a.hoisted })
		c, err = e.compile(name, code, parts(items), closed)
	}
	if err == nil && len(items) > 0 && c.runs() {
		code += "\nmain()"
		return e.compile(name, code, parts(append(items, item{start: len(code) - len("main()"), end: len(code)})), true)
	}
	return c, err
}

// compile checks the parts of a cell.
func (e *Engine) compile(name, code string, all []part, closed bool) (c *Cell, err error) {
	c = &Cell{e: e, errs: map[string]int{}}
	sees := e.view.clone()
	for i, p := range all {
		file, err := e.parse(name, code, p)
		if err != nil {
			return nil, err
		}
		dotted := map[string]types.Object{}
		if err := e.imports(file, sees, dotted); err != nil {
			return nil, err
		}
		if p.kind == importing {
			c.units = append(c.units, &unit{imports: sees.clone().imports, dotted: dotted})
			continue
		}
		files := []*ast.File{file}
		if p.kind == statement {
			files = runs(file)
		}
		for j, file := range files {
			e.linked(file, sees)
			keepDefers(file)
			var u *unit
			if p.kind == declaration {
				u, err = e.declarations(file, sees)
			} else {
				u, err = e.statements(c, file, sees, i+1 == len(all) && j+1 == len(files) && !closed)
			}
			if err != nil {
				return nil, err
			}
			c.units = append(c.units, u)
		}
	}
	return c, nil
}

// rescue makes a panic of go/types, ssa or ixgo the error of the cell.
func rescue(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("this cell cannot be compiled: %v", r)
	}
}

// runs reports whether a cell that only declares declares a function main without arguments.
func (c *Cell) runs() bool {
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

// imports takes the import declarations out of a file and notes them, and the names of packages imported by a dot.
func (e *Engine) imports(file *ast.File, sees view, dotted map[string]types.Object) error {
	var missing *MissingError
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		pkg, err := importer{e}.Import(path)
		if gone := (*MissingError)(nil); errors.As(err, &gone) {
			if missing == nil {
				missing = &MissingError{Line: e.fset.Position(spec.Pos()).Line}
			}
			missing.Paths = append(missing.Paths, gone.Paths...)
			continue
		}
		if err != nil {
			return types.Error{Fset: e.fset, Pos: spec.Pos(), Msg: err.Error()}
		}
		path = pkg.Path()
		name := pkg.Name()
		if spec.Name != nil {
			name = spec.Name.Name
		}
		switch name {
		case "_":
		case ".":
			for _, n := range pkg.Scope().Names() {
				if token.IsExported(n) {
					dotted[n] = pkg.Scope().Lookup(n)
					sees.set(n, dotted[n])
				}
			}
		default:
			delete(sees.names, name)
			sees.imports[name] = path
		}
	}
	file.Imports, file.Decls = nil, slices.DeleteFunc(file.Decls, func(d ast.Decl) bool {
		g, ok := d.(*ast.GenDecl)
		return ok && g.Tok == token.IMPORT
	})
	if missing != nil {
		return missing
	}
	return nil
}

// MissingError says that packages are not linked in.
type MissingError struct {
	Paths []string
	Line  int
}

func (m *MissingError) Error() string { return "not in this kernel: " + strings.Join(m.Paths, ", ") }

// linked imports packages that a file uses without having imported them.
func (e *Engine) linked(file *ast.File, sees view) {
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if ok && sees.names[id.Name] == nil && sees.imports[id.Name] == "" && e.Named != nil {
			if path := e.Named(id.Name); path != "" {
				sees.imports[id.Name] = path
			}
		}
		return true
	})
}

// declarations checks a unit of declarations.
func (e *Engine) declarations(file *ast.File, sees view) (*unit, error) {
	u, err := e.check(file, sees)
	if err != nil {
		return nil, err
	}
	u.line = e.fset.Position(file.Decls[0].Pos()).Line
	for _, name := range u.pkg.Scope().Names() {
		o := u.pkg.Scope().Lookup(name)
		if v, ok := o.(*types.Var); ok {
			u.same(v, sees)
		}
		sees.set(name, o)
		u.names = append(u.names, declared{name, o, 0})
	}
	return u, nil
}

// same notes that a variable is an earlier one of the same type and name, declared again.
func (u *unit) same(v *types.Var, sees view) *types.Var {
	old, ok := sees.names[v.Name()].(*types.Var)
	if !ok || old.Pkg().Path() != mainPath || !types.Identical(old.Type(), v.Type()) {
		return nil
	}
	if u.again == nil {
		u.again = map[string]*types.Var{}
	}
	u.again[v.Name()] = old
	return old
}

// declared is a name that the step of a unit declares.
type declared struct {
	name string
	o    types.Object
	step int
}

// statements checks a unit of statements. Their variables are those of the session: where one is
// declared again with the same type, it is the same one.
func (e *Engine) statements(c *Cell, file *ast.File, sees view, last bool) (*unit, error) {
	fn := file.Decls[0].(*ast.FuncDecl)
	list := fn.Body.List
	fn.Body.List = nil
	var lines []int
	show := -1
	for i, st := range list {
		lines = append(lines, e.fset.Position(st.Pos()).Line)
		step := call(atName, st.Pos(), &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(i), ValuePos: st.Pos()})
		if x, ok := st.(*ast.ExprStmt); ok && last && i+1 == len(list) && !printing.MatchString(types.ExprString(x.X)) {
			show = len(fn.Body.List) + 1
			if shown, ok := x.X.(*ast.CallExpr); !ok || !isName(shown.Fun, showName) { // else of a list
				c.Call = isCall(x.X)
				st = call(showName, st.Pos(), x.X)
			}
		} else if ok && !isCall(x.X) { // the value of an expression that stands alone is not used
			st = &ast.AssignStmt{Lhs: []ast.Expr{&ast.Ident{Name: "_", NamePos: st.Pos()}}, Tok: token.ASSIGN,
				TokPos: st.Pos(), Rhs: []ast.Expr{x.X}}
		}
		fn.Body.List = append(fn.Body.List, step, st)
	}
	u, err := e.check(file, sees)
	if err != nil && show >= 0 && strings.Contains(err.Error(), "used as value") {
		fn.Body.List[show], show = list[len(list)-1], -1
		u, err = e.check(file, sees)
	}
	if err != nil {
		return nil, err
	}
	if show >= 0 {
		for _, x := range fn.Body.List[show].(*ast.ExprStmt).X.(*ast.CallExpr).Args {
			t := u.src.info.TypeOf(ast.Unparen(x))
			if all, ok := t.(*types.Tuple); ok {
				for v := range all.Variables() {
					c.shown = append(c.shown, v.Type())
				}
			} else {
				c.shown = append(c.shown, t)
			}
		}
	}
	c.unread(u, fn)
	u.lines = lines
	e.variables(u, fn, sees)
	return u, nil
}

// variables makes the variables that the statements of a unit declare those of the session.
func (e *Engine) variables(u *unit, fn *ast.FuncDecl, sees view) {
	info := u.src.info
	local := map[types.Object]*types.Var{}
	decl := &ast.GenDecl{Tok: token.VAR}
	for i, st := range fn.Body.List {
		a, ok := st.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE {
			continue
		}
		a.Tok = token.ASSIGN
		for _, x := range a.Lhs {
			id := x.(*ast.Ident)
			old, ok := info.Defs[id].(*types.Var)
			if !ok || id.Name == "_" {
				continue
			}
			v := u.same(old, sees)
			if v == nil {
				v = types.NewVar(id.Pos(), u.pkg, id.Name, old.Type())
				u.pkg.Scope().Insert(v)
				name := ast.NewIdent(id.Name)
				info.Defs[name] = v
				decl.Specs = append(decl.Specs, &ast.ValueSpec{Names: []*ast.Ident{name}})
			}
			delete(info.Defs, id)
			info.Uses[id] = v
			local[old] = v
			sees.set(id.Name, v)
			u.names = append(u.names, declared{id.Name, v, i / 2})
		}
	}
	for id, o := range info.Uses {
		if v := local[o]; v != nil {
			info.Uses[id] = v
		}
	}
	u.again = nil
	if decl.Specs != nil {
		u.src.files[0].Decls = append(u.src.files[0].Decls, decl)
	}
}

// Unread is an error that a statement at the top of a cell has assigned to a variable, which no later one reads.
type Unread struct {
	Name string // of the variable
	Line int
	Err  error
}

// unread notes to which variables the statements of a unit assign errors that none of the cell reads.
func (c *Cell) unread(u *unit, fn *ast.FuncDecl) {
	for _, st := range fn.Body.List {
		ast.Inspect(st, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				delete(c.errs, id.Name)
			}
			return true
		})
		if a, ok := st.(*ast.AssignStmt); ok {
			for _, x := range a.Lhs {
				if t := u.src.info.TypeOf(x); t != nil && types.Identical(t, types.Universe.Lookup("error").Type()) {
					c.errs[types.ExprString(x)] = c.e.fset.Position(x.Pos()).Line
				}
			}
		}
	}
}

// Unread returns the errors that the cell, which has run, has left in variables without a look at them.
func (c *Cell) Unread() (out []Unread) {
	c.e.Variables(func(name string, v reflect.Value) {
		if err, ok := v.Interface().(error); ok && c.errs[name] > 0 {
			out = append(out, Unread{name, c.errs[name], err})
		}
	})
	slices.SortFunc(out, func(a, b Unread) int { return a.Line - b.Line })
	return out
}

func isName(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}

func isCall(x ast.Expr) bool {
	_, ok := ast.Unparen(x).(*ast.CallExpr)
	return ok
}

func call(name string, pos token.Pos, args ...ast.Expr) ast.Stmt {
	return &ast.ExprStmt{X: &ast.CallExpr{Fun: &ast.Ident{Name: name, NamePos: pos}, Lparen: pos, Args: args,
		Rparen: pos}}
}

// printing finds calls of functions that print, whose results nobody wants to see.
var printing = regexp.MustCompile(`^fmt\.(Print|Fprint|Scan)\w*\(`)

// Names of the functions that statements call: with their number, and with what is shown.
const (
	atName   = Hidden + "at"
	showName = Hidden + "show"
)

// Run executes a cell. Before each statement it calls at with its line. What was declared before is then known
// to later cells, unless the calling goroutine was left behind. It returns the values of the last expression.
func (c *Cell) Run(left func() bool, at func(line int)) (out []Value, err error) {
	if err := c.e.prepare(); err != nil {
		return nil, err
	}
	for _, u := range c.units {
		if err := c.e.ready(u); err != nil {
			return nil, err
		}
		if u.pkg == nil {
			continue
		}
		c.e.publish(u, -1)
		var got []any
		run := "init"
		if u.lines != nil {
			run = runName
		} else {
			at(u.line)
		}
		c.e.now.Store(&turn{goid: Goid(), show: func(vs []any) { got = vs }, at: func(step int) {
			if left() {
				panic(Halted{})
			}
			c.e.publish(u, step)
			at(u.lines[step])
		}})
		_, err := u.run.RunFunc(run)
		if left() {
			return nil, Halted{}
		}
		if err != nil {
			return nil, err
		}
		c.e.publish(u, len(u.lines)+1)
		for i, v := range got[:min(len(got), len(c.shown))] {
			out = append(out, Value{v, c.shown[i]})
		}
		c.e.done(u)
	}
	return out, nil
}

// ready builds a unit, or makes known what it imports.
func (e *Engine) ready(u *unit) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer rescue(&err)
	maps.Copy(e.view.imports, u.imports)
	if u.pkg == nil {
		for name := range u.imports {
			delete(e.view.names, name)
		}
		for name, o := range u.dotted {
			e.view.set(name, o)
		}
		return nil
	}
	return e.build(u)
}

// publish makes known what a unit has declared before a step; functions, types and constants at once.
func (e *Engine) publish(u *unit, step int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range u.names {
		if _, isVar := d.o.(*types.Var); isVar && d.step >= step {
			continue
		}
		if f, ok := d.o.(*types.Func); ok {
			e.replace(u, f)
		}
		e.view.set(d.name, d.o)
		e.units[u.pkg] = u
	}
}
