package engine

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"unsafe"

	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/ssa"
)

// build makes a unit executable.
func (e *Engine) build(u *unit) error {
	e.needs(u)
	g := e.grow(u)
	defer func() {
		if u.run == nil {
			g.back()
		}
	}()
	units, pkgs := map[*unit]bool{}, map[*types.Package]bool{}
	e.closure(u, units, pkgs)
	prog := ssa.NewProgram(e.fset, ssa.InstantiateGenerics|ssa.BuildSerially) // serially: a panic stays in this goroutine
	for p := range pkgs {
		if s := e.source(p); s != nil {
			prog.CreatePackage(p, e.base.SourcePackage(p.Path()).Files, s.info, true)
		} else {
			prog.CreatePackage(p, nil, nil, true)
		}
	}
	kept := e.kept(u, units)
	made := map[*unit]*ssa.Package{}
	for v := range units {
		var files []*ast.File
		var info *types.Info
		if v.src != nil {
			files, info = v.src.files, v.src.info
			if v.src.at != nil {
				files, info = v.src.part(kept, v == u)
			}
		}
		made[v] = prog.CreatePackage(v.pkg, files, info, false)
	}
	prog.Build()
	n := e.needMethods(prog, u, g, kept)
	if !room(n) {
		return fmt.Errorf("the kernel has no room for %d more methods of types that cells declare (%d in all): restart it", n, capacity())
	}
	ctx := e.context()
	find := &finder{}
	if len(g.was) > 0 {
		find = e.renew(ctx, prog, g)
	}
	e.loader.mu.Lock()
	clear(e.loader.cells)
	for v, p := range made {
		if v == u {
			continue
		}
		if v.src == nil || v.src.at == nil {
			p.Func("init").Blocks = nil // was executed
		}
		e.loader.cells[unsafe.StringData(v.pkg.Path())] = &ixgo.Package{Path: mainPath, Name: "main", Vars: v.vars}
	}
	e.loader.asked = nil
	e.loader.mu.Unlock()
	for name, old := range u.again { // the variable keeps its place
		p := e.units[old.Pkg()].vars[old.Name()]
		if !u.initialized(name) {
			p.Elem().SetZero()
		}
		ctx.RegisterExternal(mainPath+"."+name, p.Interface())
	}
	in, err := ctx.NewInterp(made[u])
	if err != nil {
		return err
	}
	*private[chan ixgo.PanicError](in, "cherror") = e.panics
	e.polls(u, in)
	find.bind(in)
	e.loader.mu.Lock()
	asked := slices.Clone(e.loader.asked)
	e.loader.mu.Unlock()
	e.know(*private[*ixgo.TypesRecord](in, "record"), asked)
	for name, m := range made[u].Members {
		if _, ok := m.(*ssa.Global); ok {
			if p, ok := in.GetVarAddr(name); ok {
				u.vars[name] = reflect.ValueOf(p)
			}
		}
	}
	u.run = in
	return nil
}

// needMethods makes ixgo compile the methods of all types that a unit mentions: it compiles those of types that
// the unit itself turns into interfaces, but later units and compiled code call others. It returns how many
// methods of new types there are.
func (e *Engine) needMethods(prog *ssa.Program, u *unit, g *growth, kept map[types.Object]bool) (methods int) {
	f := reflect.ValueOf(prog).Elem().FieldByName("makeInterfaceTypes")
	if !f.IsValid() || f.Kind() != reflect.Map || f.Type().Key() != reflect.TypeFor[types.Type]() {
		panic("engine: ssa has no makeInterfaceTypes: another version")
	}
	set := reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
	need := func(t types.Type) {
		if set.IsNil() {
			set.Set(reflect.MakeMap(set.Type()))
		}
		set.SetMapIndex(reflect.ValueOf(&t).Elem(), reflect.Zero(set.Type().Elem()))
	}
	w := typeWalker{seen: map[types.Type]bool{}}
	w.named = func(n *types.Named) {
		if p := n.Obj().Pkg(); p == nil || p.Path() != mainPath && e.units[p] == nil || types.IsInterface(n) || generic(n) {
			return
		}
		need(types.NewPointer(n))
		if _, known := e.loader.known.At(n).(reflect.Type); !known {
			methods += 2 * types.NewMethodSet(types.NewPointer(n)).Len()
		}
	}
	for n := range g.was {
		w.visit(n)
	}
	for o := range kept {
		if t, ok := o.(*types.TypeName); ok {
			w.visit(t.Type())
		}
	}
	if u.src.at != nil {
		return methods
	}
	for _, t := range u.src.info.Types {
		w.visit(t.Type)
	}
	for _, o := range u.src.info.Defs {
		if o != nil {
			w.visit(o.Type())
		}
	}
	return methods
}

// room reports whether there are entries left in the table through which compiled code calls methods of cells; ixgo
// ends the process where there are none.
func room(methods int) bool {
	_, _, free := ixgo.IcallStat()
	return methods == 0 || methods+spare <= free
}

// spare are the entries kept for the methods of types that appear while a unit is compiled.
var spare = 100

func capacity() int {
	all, _, _ := ixgo.IcallStat()
	return all
}

// generic reports whether a type has type parameters for which nothing is put: its own, or those of the function that it is local to.
func generic(t types.Type) (found bool) {
	w := typeWalker{seen: map[types.Type]bool{}, param: func() { found = true }}
	w.named = func(n *types.Named) {
		if o := n.Obj(); o.Pkg() != nil && o.Pkg().Scope().Lookup(o.Name()) != o {
			w.visit(n.Underlying())
		}
	}
	if n, ok := t.(*types.Named); ok && n.TypeParams().Len() > n.TypeArgs().Len() {
		return true
	}
	w.visit(t)
	return found
}

// closure collects what a unit needs, and what that needs.
func (e *Engine) closure(u *unit, units map[*unit]bool, pkgs map[*types.Package]bool) {
	if units[u] {
		return
	}
	units[u] = true
	for p := range u.pkgs {
		e.imported(p, pkgs)
	}
	for v := range u.needs {
		e.closure(v, units, pkgs)
	}
	for _, v := range u.methods {
		e.closure(v, units, pkgs)
	}
}

func (e *Engine) imported(p *types.Package, pkgs map[*types.Package]bool) {
	if pkgs[p] {
		return
	}
	pkgs[p] = true
	if e.source(p) != nil {
		for _, q := range p.Imports() {
			e.imported(q, pkgs)
		}
	}
}

// initialized reports whether the declaration of a variable gives it a value.
func (u *unit) initialized(name string) bool {
	for _, in := range u.src.info.InitOrder {
		for _, v := range in.Lhs {
			if v.Name() == name {
				return true
			}
		}
	}
	return false
}

// done forgets what is not needed of a unit that was executed, and units of which nothing is known any more.
func (e *Engine) done(u *unit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	u.run, u.lines, u.again, u.added = nil, nil, nil, nil
	functions := false
	for _, d := range u.src.files[0].Decls {
		f, ok := d.(*ast.FuncDecl)
		functions = functions || ok && f.Name.Name != runName && f.Name.Name != "init"
	}
	if !functions {
		u.src = nil
		w := e.needed(u) // of what it declares: promoted methods are those of other units
		w.deep = true
		for _, name := range u.pkg.Scope().Names() {
			w.visit(u.pkg.Scope().Lookup(name).Type())
		}
	}
	if e.units[u.pkg] == nil && u.names == nil {
		return
	}
	if len(e.units) > e.swept {
		e.sweep()
		e.swept = 2*len(e.units) + 50
	}
}

// sweep forgets the units that nothing refers to.
func (e *Engine) sweep() {
	live := map[*types.Package]*unit{}
	var mark func(u *unit)
	w := typeWalker{seen: map[types.Type]bool{}, deep: true, pkg: func(p *types.Package) { mark(e.units[p]) }}
	mark = func(u *unit) {
		if u == nil || live[u.pkg] != nil {
			return
		}
		live[u.pkg] = u
		for v := range u.needs {
			mark(v)
		}
		for _, v := range u.methods {
			mark(v)
		}
		for _, name := range u.pkg.Scope().Names() {
			w.visit(u.pkg.Scope().Lookup(name).Type())
		}
	}
	for _, o := range e.view.names {
		mark(e.units[o.Pkg()])
	}
	for _, u := range e.sources {
		mark(u)
	}
	e.units = live
}
