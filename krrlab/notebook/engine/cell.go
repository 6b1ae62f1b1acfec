package engine

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// Cell is the type-checked code of a notebook cell, ready to run.
type Cell struct {
	engine       *Engine
	units        []*unit
	shownTypes   []types.Type   // types of the displayed values, those of the last expression
	EndsWithCall bool           // the last expression, which is displayed, is a call
	errorLines   map[string]int // by variable, the line that assigned an error which no later statement reads
	sections     []section      // the items of the cell, grouped by kind
	visibleAtEnd namespace      // names that are visible when the cell has ended
}

// Value is a value of the last expression of a cell, with its type as declared in the cell.
type Value struct {
	Value any
	Type  types.Type
}

// namespace has the names that a unit (a separately compiled piece of a cell) can use.
type namespace struct {
	names   map[string]types.Object // objects by name
	imports map[string]string       // paths of imported packages by name
}

// clone returns a copy that can be changed independently.
func (n namespace) clone() namespace { return namespace{maps.Clone(n.names), maps.Clone(n.imports)} }

// bind makes name denote the object.
func (n namespace) bind(name string, obj types.Object) {
	n.names[name] = obj
	delete(n.imports, name)
}

// Compile type-checks a whole cell without executing any of it. name is used in error positions. If the cell is a
// program, Compile appends a call of main.
func (e *Engine) Compile(name, code string) (c *Cell, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer rescue(&err)
	items, endsWithSemicolon, err := e.splitItems(name, code)
	if err != nil {
		return nil, err
	}
	display := showLast
	if endsWithSemicolon {
		display = hideLast
	}
	c, err = e.compile(name, code, items, display)
	// As in a Go file, a declaration may follow its first use. Try again with declarations first.
	if typeErr := (types.Error{}); errors.As(err, &typeErr) &&
		(strings.Contains(typeErr.Msg, "undefined") || strings.Contains(typeErr.Msg, "non-local type")) {
		if items[len(items)-1].kind != statement {
			display = hideLast
		}
		slices.SortStableFunc(items, func(a, b cellItem) int { return b.hoistOrder - a.hoistOrder })
		originalCell, originalErr := c, err
		c, err = e.compile(name, code, items, display)
		// If the name is visible in the order of the cell, the new order causes this error. The first error is the one
		// to report.
		if errors.As(err, &typeErr) && originalCell.visibleAtEnd.names[strings.TrimPrefix(typeErr.Msg,
			"undefined: ")] != nil {
			err = originalErr
		}
	}
	if err == nil && len(items) > 0 && c.isProgram() {
		code += callMain
		items = append(items, cellItem{start: len(code) - len(callMain) + 1, end: len(code)})
		return e.compile(name, code, items, hideLast)
	}
	return c, err
}

// lastDisplay says whether a cell displays the value of its last expression.
type lastDisplay int

const (
	showLast lastDisplay = iota
	hideLast
)

// callMain is appended to a cell that is a program.
const callMain = "\nmain()"

// compile checks the given items of a cell, in order. After an error, visibleAtEnd of the cell has the names that were
// visible after the last unit without an error.
func (e *Engine) compile(name, code string, items []cellItem, display lastDisplay) (c *Cell, err error) {
	visible := e.visible.clone()
	c = &Cell{engine: e, errorLines: map[string]int{}, sections: groupItems(items), visibleAtEnd: visible}
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
				u, err = e.prepareDeclarations(file, visible)
			} else {
				unitDisplay := display
				if isLast := i+1 == len(c.sections) && j+1 == len(files); !isLast {
					unitDisplay = hideLast
				}
				u, err = e.prepareStatements(c, file, visible, unitDisplay)
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

// prepareDeclarations type-checks a unit of declarations and binds the declared names in visible.
func (e *Engine) prepareDeclarations(file *ast.File, visible namespace) (*unit, error) {
	u, err := e.checkUnit(file, visible)
	if err != nil {
		return nil, err
	}
	u.line = e.fset.Position(file.Decls[0].Pos()).Line
	for _, name := range u.pkg.Scope().Names() {
		obj := u.pkg.Scope().Lookup(name)
		if v, ok := obj.(*types.Var); ok {
			u.recordRedeclared(v, visible)
		}
		visible.bind(name, obj)
		u.declaredNames = append(u.declaredNames, declaredName{name, obj, 0})
	}
	return u, nil
}

// recordRedeclared returns the earlier variable with the name and type of v and records it in u.redeclared. It returns
// nil if there is none.
func (u *unit) recordRedeclared(v *types.Var, visible namespace) *types.Var {
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

// Run executes a cell and returns the values of its last expression. It calls onLine with the line of each statement
// before the statement is executed. Declarations become visible to later cells one by one during execution. If
// isAbandoned returns true before a statement or at the end of a unit, Run stops with the error Stopped and publishes
// nothing more.
func (c *Cell) Run(isAbandoned func() bool, onLine func(line int)) (shown []Value, err error) {
	if err := c.engine.initializePackages(); err != nil {
		return nil, err
	}
	for _, unit := range c.units {
		if err := c.engine.activate(unit); err != nil {
			return nil, err
		}
		if unit.pkg == nil {
			continue
		}
		c.engine.publish(unit, -1) // all names except variables
		var shownValues []any
		entry := "init"
		if unit.lines != nil {
			entry = runFunc
		} else {
			onLine(unit.line)
		}
		c.engine.current.Store(&execution{goid: GoroutineID(), show: func(values []any) { shownValues = values },
			beforeStep: func(step int) {
				if isAbandoned() {
					panic(Stopped{})
				}
				c.engine.publish(unit, step)
				onLine(unit.lines[step])
			}})
		_, err := unit.interp.RunFunc(entry)
		if isAbandoned() {
			return nil, Stopped{}
		}
		if err != nil {
			return nil, err
		}
		c.engine.publish(unit, len(unit.lines)+1) // all names
		for i, v := range shownValues[:min(len(shownValues), len(c.shownTypes))] {
			shown = append(shown, Value{v, c.shownTypes[i]})
		}
		c.engine.release(unit)
	}
	return shown, nil
}

// activate makes a unit executable. For a unit of imports, it makes the imported names visible.
func (e *Engine) activate(u *unit) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer rescue(&err)
	maps.Copy(e.visible.imports, u.imports)
	if u.pkg == nil {
		for name := range u.imports {
			delete(e.visible.names, name)
		}
		for name, obj := range u.dotImported {
			e.visible.bind(name, obj)
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
		e.visible.bind(d.name, d.object)
		e.units[u.pkg] = u
	}
}
