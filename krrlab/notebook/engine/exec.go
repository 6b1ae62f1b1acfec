package engine

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
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
	units, pkgs := map[*unit]bool{}, map[*types.Package]bool{}
	e.closure(u, units, pkgs)
	mode := ssa.InstantiateGenerics | ssa.BuildSerially // serially: a panic stays in this goroutine
	if !parallel.on() {
		mode |= ssa.NaiveForm // without phi nodes of variables
	}
	prog := ssa.NewProgram(e.fset, mode)
	for p := range pkgs {
		if s := e.source(p); s != nil {
			prog.CreatePackage(p, e.base.SourcePackage(p.Path()).Files, s.info, true)
		} else {
			prog.CreatePackage(p, nil, nil, true)
		}
	}
	kept := e.kept(u, units)
	all, n := e.withMethods(u, kept)
	if n > 0 && !invoking.on() || len(all) > 0 && !sharing.on() {
		return errors.New("types of cells need what this kernel lacks (see what it said at first)")
	}
	// The table through which compiled code calls methods of cells: ixgo ends the process where it is full.
	if size, _, free := ixgo.IcallStat(); n > 0 && n+spare > free {
		return fmt.Errorf("the kernel has no room for %d more methods of types that cells declare (%d in all): "+
			"restart it", n, size)
	}
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
		if v == u && all != nil {
			files = append(slices.Clip(files), asInterfaces(u.pkg, info, all))
		}
		made[v] = prog.CreatePackage(v.pkg, files, info, false)
	}
	prog.Build()
	if !rewriting.on() {
		if err := lostEntry(prog); err != nil {
			return err
		}
	}
	ctx := e.context()
	e.earlier(u, made, ctx)
	in, err := ctx.NewInterp(made[u])
	if err != nil {
		return err
	}
	e.adapt(u, in)
	if sharing.on() {
		e.loader.know(*at[*ixgo.TypesRecord](in, record))
	}
	for name := range made[u].Members {
		if p, ok := in.GetVarAddr(name); ok {
			u.vars[name] = reflect.ValueOf(p)
		}
	}
	u.run = in
	return nil
}

// earlier gives a unit the variables of those that it is built with, and those that it declares again.
func (e *Engine) earlier(u *unit, made map[*unit]*ssa.Package, ctx *ixgo.Context) {
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
}

// withMethods returns all types of cells that a unit mentions, and how many methods those of them have
// that are new.
func (e *Engine) withMethods(u *unit, kept map[types.Object]bool) (all []types.Type, methods int) {
	w := typeWalker{seen: map[types.Type]bool{}}
	w.named = func(n *types.Named) {
		if p := n.Obj().Pkg(); p == nil || p.Path() != mainPath && e.units[p] == nil || types.IsInterface(n) ||
			generic(n) {
			return
		}
		all = append(all, n)
		if _, known := e.loader.known.At(n).(reflect.Type); !known {
			methods += 2 * types.NewMethodSet(types.NewPointer(n)).Len()
		}
	}
	for o := range kept {
		if t, ok := o.(*types.TypeName); ok {
			w.visit(t.Type())
		}
	}
	if u.src.at != nil {
		return all, methods
	}
	for _, t := range u.src.info.Types {
		w.visit(t.Type)
	}
	for _, o := range u.src.info.Defs {
		if o != nil {
			w.visit(o.Type())
		}
	}
	return all, methods
}

// asInterfaces returns a file with a function that turns pointers to types into interfaces, and is never called: of the
// types that a unit turns into interfaces ixgo compiles the methods, which later units and compiled code call.
func asInterfaces(p *types.Package, info *types.Info, all []types.Type) *ast.File {
	ident := func(name string, o types.Object) *ast.Ident {
		id := ast.NewIdent(name)
		info.Uses[id] = o
		return id
	}
	anys := types.NewVar(token.NoPos, p, "", types.NewSlice(types.Universe.Lookup("any").Type()))
	take := types.NewParam(token.NoPos, p, "take",
		types.NewSignatureType(nil, nil, nil, types.NewTuple(anys), nil, true))
	call := &ast.CallExpr{Fun: ident("take", take)}
	info.Types[call] = types.TypeAndValue{Type: types.NewTuple()}
	body := &ast.BlockStmt{}
	for _, t := range all {
		x, def := types.NewVar(token.NoPos, p, "x", types.NewPointer(t)), ast.NewIdent("x")
		info.Defs[def] = x
		call.Args = append(call.Args, ident("x", x))
		body.List = append(body.List, &ast.DeclStmt{Decl: &ast.GenDecl{Tok: token.VAR,
			Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{def}}}}})
	}
	body.List = append(body.List, &ast.ExprStmt{X: call})
	name, param := ast.NewIdent(Hidden+"types"), ast.NewIdent("take")
	info.Defs[param] = take
	info.Defs[name] = types.NewFunc(token.NoPos, p, name.Name,
		types.NewSignatureType(nil, nil, nil, types.NewTuple(take), nil, false))
	params := &ast.FieldList{List: []*ast.Field{{Names: []*ast.Ident{param}}}}
	return &ast.File{Name: ast.NewIdent(p.Name()), Decls: []ast.Decl{
		&ast.FuncDecl{Name: name, Type: &ast.FuncType{Params: params}, Body: body}}}
}

// spare are the entries kept for the methods of types that appear while a unit is compiled.
const spare = 100

// generic reports whether a type has type parameters for which nothing is put: its own, or those of the function that
// it is local to.
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
	u.run, u.lines, u.again = nil, nil, nil
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
