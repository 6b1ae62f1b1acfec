package golang

import (
	"go/ast"
	"go/token"
	"maps"

	"github.com/cosmos72/gomacro/ast2"
	"github.com/cosmos72/gomacro/base"
	basereflect "github.com/cosmos72/gomacro/base/reflect"
	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/xreflect"
)

// names are what cells declared.
type names = map[string]*fast.Bind

// step is a compiled statement of a cell, or declarations that stand together.
type step struct {
	expr   *fast.Expr
	before names // what was declared before it
	line   int
}

// compile compiles a cell in the order in which it is executed.
func (s *Session) compile(nodes []ast.Node) []step {
	c := s.ir.Comp
	var steps []step
	for _, group := range groups(nodes) {
		st := step{before: maps.Clone(c.Binds), line: c.Fileset.Position(group[0].Pos()).Line}
		form := ast2.AnyToAst(group, "cell")
		st.expr = s.ir.CompileAst(form)
		if changed := retyped(st.before, c.Binds); len(changed) > 0 {
			st.expr = s.compileAnew(form, st.before, changed)
		}
		steps = append(steps, st)
	}
	return steps
}

// groups puts the imports of a cell first, and together the declarations that stand together, since
// each of them may use the others.
func groups(nodes []ast.Node) [][]ast.Node {
	var imports []ast.Node
	var out [][]ast.Node
	joined := false
	for _, n := range nodes {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			imports = append(imports, n)
			continue
		}
		_, decl := n.(ast.Decl)
		if decl && joined {
			out[len(out)-1] = append(out[len(out)-1], n)
		} else {
			out = append(out, []ast.Node{n})
		}
		joined = decl
	}
	if imports != nil {
		out = append([][]ast.Node{imports}, out...)
	}
	return out
}

// retyped returns the names that were declared with another type in the slot they had. What was
// compiled before takes the bits there for the type of old.
func retyped(before, now names) []string {
	var out []string
	for name, b := range now {
		old := before[name]
		if old == nil || old == b || b.Desc.Index() == fast.NoIndex || b.Desc.Index() != old.Desc.Index() {
			continue
		}
		was, is := old.Desc.Class(), b.Desc.Class()
		if (was == fast.IntBind) == (is == fast.IntBind) && (was != is || old.Type.ReflectType() != b.Type.ReflectType()) {
			out = append(out, name)
		}
	}
	return out
}

// compileAnew compiles declarations again so that the names that change their type get slots of
// their own, as in an inner scope: what was compiled before keeps the old ones. The
// scope shares the variables of the session; until a name is declared in it, it has the old meaning.
func (s *Session) compileAnew(form ast2.Ast, before names, changed []string) *fast.Expr {
	c := s.ir.Comp
	c.Binds = before
	inner := fast.NewComp(c, nil)
	inner.UpCost, inner.Depth, inner.CompBinds = 0, c.Depth, c.CompBinds
	inner.Binds = maps.Clone(before)
	for _, name := range changed {
		delete(inner.Binds, name)
	}
	expr := inner.Compile(form)
	c.CompBinds = inner.CompBinds
	return expr
}

// exec executes the steps of a cell and returns the values of the last, or false if the cell was left
// behind meanwhile. It does what gomacro's own RunExpr does, but leaves the innermost
// environment in CurrEnv when a panic comes, from which the line is known.
func (s *Session) exec(c *cell, steps []step) (vals []xreflect.Value, types []xreflect.Type, ok bool) {
	env := s.ir.PrepareEnv()
	for i := range steps {
		e := steps[i].expr
		c.last = steps[i].line
		vals, types = nil, nil
		if e == nil {
			continue
		}
		if e.Untyped() {
			e.ConstTo(e.DefaultType())
		}
		c.names.Store(&steps[i].before)
		env.Run.CurrEnv = env
		v, vs := e.AsXV(fast.COptKeepUntyped)(env)
		env.Run.CurrEnv = nil
		c.names.Store(nil)
		if c.state.Load() != isRunning {
			return nil, nil, false
		}
		if i+1 < len(steps) && c.hits.Load() > 0 { // what comes next does not run
			c.names.Store(&steps[i+1].before)
			panic(base.SigInterrupt)
		}
		vals, types = basereflect.PackValues(v, vs), basereflect.PackTypes(e.Type, e.Types)
	}
	return vals, types, true
}
