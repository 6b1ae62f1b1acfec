package engine

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"

	"github.com/goplus/ixgo"
	"github.com/goplus/reflectx"
	"golang.org/x/tools/go/ssa"
)

// method is one that a unit declares of a type of an earlier unit.
type method struct {
	of *types.Named
	f  *types.Func
}

// extended are the types of earlier units whose methods a file declares, with these declarations.
func (e *Engine) extended(file *ast.File, sees view) map[*ast.FuncDecl]*types.Named {
	own := declaredTypes(file)
	out := map[*ast.FuncDecl]*types.Named{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv.NumFields() != 1 {
			continue
		}
		x := ast.Unparen(f.Recv.List[0].Type)
		if p, ok := x.(*ast.StarExpr); ok {
			x = ast.Unparen(p.X)
		}
		id, ok := x.(*ast.Ident)
		if !ok || own[id.Name] {
			continue
		}
		if o, ok := sees.names[id.Name].(*types.TypeName); ok {
			n, ok := types.Unalias(o.Type()).(*types.Named)
			if ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == mainPath && n.TypeParams().Len() == 0 {
				out[f] = n
			}
		}
	}
	return out
}

func declaredTypes(file *ast.File) map[string]bool {
	own := map[string]bool{}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					own[t.Name.Name] = true
				}
			}
		}
	}
	return own
}

// extend checks a file that declares methods of earlier types. A first look at the signatures makes the methods known
// to the bodies that the second one checks. The methods stay with their types; the caller calls undo to take them away.
func (e *Engine) extend(file *ast.File, sees view, of map[*ast.FuncDecl]*types.Named) (u *unit, undo func(),
	err error) {
	old := map[*types.Named][]*types.Func{}
	undo = func() {
		for n, ms := range old {
			*at[[]*types.Func](n, typeMethods) = ms
		}
	}
	home := map[*types.Named]*types.Package{}
	for _, n := range of { // go/types takes methods of types of its own package only
		if home[n] == nil {
			old[n], home[n] = *at[[]*types.Func](n, typeMethods), n.Obj().Pkg()
			setPackage(n.Obj(), e.pkg)
		}
	}
	defer func() {
		for n, p := range home {
			setPackage(n.Obj(), p)
		}
		if u == nil {
			undo()
		}
	}()
	first := &source{files: []*ast.File{file}, info: newInfo()}
	_ = e.types(first, sees.names, true)
	made := map[*ast.FuncDecl]*types.Func{}
	var added []method
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || of[f] == nil {
			continue
		}
		m, ok := first.info.Defs[f.Name].(*types.Func)
		if !ok || f.Name.Name == "_" {
			continue
		}
		if msg := e.cannotAdd(m, of[f], home, added); msg != "" {
			return nil, undo, types.Error{Fset: e.fset, Pos: f.Name.Pos(), Msg: msg}
		}
		made[f] = m
		added = append(added, method{of[f], m})
		add(method{of[f], m})
	}
	u, err = e.check(file, sees.names)
	if err != nil {
		return nil, undo, err
	}
	for f, m := range made {
		setPackage(m, u.pkg)
		u.src.info.Defs[f.Name] = m
	}
	u.added = added
	if err := e.early(u); err != nil {
		undo()
		return nil, undo, err
	}
	return u, undo, nil
}

// early reports a variable of a unit that is used before it has its value: go/types orders initial values by what they
// use, but does not look into methods of earlier types.
func (e *Engine) early(u *unit) error {
	info := u.src.info
	bodies := map[types.Object]ast.Node{}
	for _, d := range u.src.files[0].Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			bodies[info.Defs[f.Name]] = f.Body
		}
	}
	late := map[types.Object]bool{}
	for _, in := range slices.Backward(info.InitOrder) {
		var found *ast.Ident
		been := map[types.Object]bool{}
		var look func(n ast.Node) bool
		look = func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				o := info.Uses[id]
				if late[o] {
					found = id
				}
				if b := bodies[o]; b != nil && !been[o] {
					been[o] = true
					ast.Inspect(b, look)
				}
			}
			return true
		}
		ast.Inspect(in.Rhs, look)
		if found != nil {
			return types.Error{Fset: e.fset, Pos: found.Pos(),
				Msg: fmt.Sprintf("%s is used before it has its value: declare it in a cell before", found.Name)}
		}
		for _, v := range in.Lhs {
			late[v] = true
		}
	}
	return nil
}

// cannotAdd says why a type cannot get a method, "" if it can.
func (e *Engine) cannotAdd(m *types.Func, to *types.Named, home map[*types.Named]*types.Package,
	added []method) (why string) {
	name := to.Obj().Name()
	if s, ok := to.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Name() == m.Name() {
				return fmt.Sprintf("field and method with the same name %s", m.Name())
			}
		}
	}
	for _, a := range added {
		if a.of == to && a.f.Name() == m.Name() {
			return fmt.Sprintf("method %s.%s already declared", name, m.Name())
		}
	}
	w := typeWalker{seen: map[types.Type]bool{}, named: func(n *types.Named) {
		if n.Obj().Pkg() == e.pkg && home[n] == nil {
			why = fmt.Sprintf("the method %s.%s of a type of an earlier cell mentions %s, which is declared with it: "+
				"declare %s in a cell before, or %s again in this one, with all of its methods",
				name, m.Name(), n.Obj().Name(), n.Obj().Name(), name)
		}
	}}
	w.visit(m.Type())
	return why
}

// add gives a type a method, which replaces that of the same name.
func add(m method) {
	list := at[[]*types.Func](m.of, typeMethods)
	with := slices.Clone(*list)
	if i := slices.IndexFunc(with, func(f *types.Func) bool { return f.Name() == m.f.Name() }); i >= 0 {
		with[i] = m.f
	} else {
		with = append(with, m.f)
	}
	*list = with
}

// growth is what the methods change that a unit declares of earlier types.
type growth struct {
	was  map[*types.Named]reflect.Type // types that are made again, with what they were
	undo []func()
}

// grow adds the methods that a unit declares of earlier types, and forgets the reflect.Types that lack them.
func (e *Engine) grow(u *unit) *growth {
	g := &growth{was: map[*types.Named]reflect.Type{}}
	if u.added == nil {
		return g
	}
	grown := map[*types.Named]bool{}
	for _, m := range u.added {
		list := at[[]*types.Func](m.of, typeMethods)
		had := *list
		g.undo = append(g.undo, func() { *list = had })
		add(m)
		grown[m.of] = true
		if v := e.units[m.of.Obj().Pkg()]; v != nil {
			of := v.methods
			g.undo = append(g.undo, func() { v.methods = of })
			v.methods = append(slices.DeleteFunc(slices.Clone(of), func(w *unit) bool { return w == u || !v.has(w) }),
				u)
		}
	}
	e.loader.mu.Lock()
	defer e.loader.mu.Unlock()
	for _, t := range e.loader.known.Keys() {
		if n, ok := t.(*types.Named); ok && e.units[n.Obj().Pkg()] != nil && reaches(n, grown) {
			g.was[n] = e.loader.known.At(t).(reflect.Type)
		}
	}
	for n, rt := range g.was {
		e.loader.known.Delete(n)
		g.undo = append(g.undo, func() { e.loader.know(n, rt) })
		u.needs[e.units[n.Obj().Pkg()]] = true
	}
	return g
}

// has reports whether a type of a unit has methods of another one.
func (u *unit) has(w *unit) bool {
	for _, name := range u.pkg.Scope().Names() {
		if n, ok := u.pkg.Scope().Lookup(name).Type().(*types.Named); ok {
			for m := range n.Methods() {
				if m.Pkg() == w.pkg {
					return true
				}
			}
		}
	}
	return false
}

// back makes all as it was before, where the unit cannot be built.
func (g *growth) back() {
	for _, f := range slices.Backward(g.undo) {
		f()
	}
}

// reaches reports whether a type is made of one of some types of cells, or has methods that mention one.
func reaches(t types.Type, some map[*types.Named]bool) (found bool) {
	w := typeWalker{seen: map[types.Type]bool{}, deep: true, named: func(n *types.Named) { found = found || some[n] }}
	w.visit(t)
	return found
}

// finder finds methods in an interpreter that is made later.
type finder struct{ found []*later }

type later struct {
	typ  reflect.Type
	f    *types.Func
	call func([]reflect.Value) []reflect.Value
}

// FindMethod returns a method that can be called when bind has found it.
func (f *finder) FindMethod(typ reflect.Type, fn *types.Func) func([]reflect.Value) []reflect.Value {
	l := &later{typ: typ, f: fn}
	f.found = append(f.found, l)
	return func(args []reflect.Value) []reflect.Value { return l.call(args) }
}

func (f *finder) bind(in *ixgo.Interp) {
	for _, l := range f.found {
		l.call = in.FindMethod(l.typ, l.f)
	}
}

// renew makes the types again that grow has forgotten, and gives the variables of the session and what they hold their
// new types: the memory stays where it is, for nothing but methods has changed.
func (e *Engine) renew(record *ixgo.TypesRecord, g *growth) {
	now := changed{types: map[reflect.Type]reflect.Type{}, boxes: map[reflect.Type]bool{}, seen: map[seen]bool{}}
	some := map[*types.Named]bool{}
	for n, old := range g.was {
		rt, _ := record.ToType(n)
		some[n], now.types[old] = true, rt
	}
	for _, v := range e.units {
		for name, p := range v.vars {
			o := v.pkg.Scope().Lookup(name)
			if o == nil {
				continue
			}
			if reaches(o.Type(), some) {
				rt, _ := record.ToType(o.Type())
				v.vars[name] = reflect.NewAt(rt, p.UnsafePointer())
				g.undo = append(g.undo, func() { v.vars[name] = p })
			}
			now.all(v.vars[name].Elem())
		}
	}
	e.loader.mu.Lock()
	asked := e.loader.asked
	e.loader.asked = nil
	e.loader.mu.Unlock()
	e.know(record, asked)
}

// newRecord returns what makes the reflect.Types of a program; their methods are those of the interpreter to which the
// finder is bound.
func (e *Engine) newRecord(ctx *ixgo.Context, prog *ssa.Program) (*ixgo.TypesRecord, *finder) {
	find, rctx, check := &finder{}, reflectx.NewContext(), ctx.MethodChecker(ctx, prog)
	rctx.SetHasImethod(func(t reflect.Type, m reflectx.Method) bool { return m.FuncId != -1 && check(t, m) })
	return ixgo.NewTypesRecord(ctx, rctx, prog, e.loader, find, nil), find
}

// know keeps the types that a record has made.
func (e *Engine) know(record *ixgo.TypesRecord, asked []types.Type) {
	for _, t := range asked {
		rt, _ := record.ToType(t)
		e.loader.know(t, rt)
	}
}
