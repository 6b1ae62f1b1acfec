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

// build compiles a unit (a separately compiled piece of a cell, or an interpreted package), together with the units and
// packages it depends on, and sets u.interp.
func (e *Engine) build(u *unit) error {
	e.findDependencies(u)
	built, err := e.buildSSA(u)
	if err != nil {
		return err
	}
	ctx := e.newContext()
	e.bindEarlierVariables(u, built, ctx)
	interp, err := ctx.NewInterp(built[u])
	if err != nil {
		return err
	}
	e.patchCode(u, interp)
	if typeFeature.available() {
		e.loader.recordTypes(*fieldAddr[*ixgo.TypesRecord](interp, recordField))
	}
	for name := range built[u].Members {
		if p, ok := interp.GetVarAddr(name); ok {
			u.vars[name] = reflect.ValueOf(p)
		}
	}
	u.interp = interp
	return nil
}

// buildSSA builds the SSA form of a unit and of the units and packages it depends on. It returns the packages of the
// units. It is an error if the unit needs a feature or method table entries that are not available.
func (e *Engine) buildSSA(u *unit) (map[*unit]*ssa.Package, error) {
	units, pkgs := set[*unit]{}, set[*types.Package]{}
	e.collectDependencies(u, units, pkgs)
	mode := ssa.InstantiateGenerics | ssa.BuildSerially // build serially, so that rescue recovers a panic of ssa
	if !phiFeature.available() {
		mode |= ssa.NaiveForm // without phi nodes, which ixgo executes one after the other
	}
	prog := ssa.NewProgram(e.fset, mode)
	for p := range pkgs {
		var files []*ast.File
		var info *types.Info
		if src := e.packageSyntax(p); src != nil {
			files, info = src.files, src.info
		}
		prog.CreatePackage(p, files, info, true)
	}
	used := e.usedObjects(u, units)
	cellTypes, newMethods := e.cellTypes(u, used)
	if err := checkMethods(len(cellTypes), newMethods); err != nil {
		return nil, err
	}
	built := map[*unit]*ssa.Package{}
	for v := range units {
		var files []*ast.File
		var info *types.Info
		if v.src != nil {
			files, info = v.src.files, v.src.info
			if v.src.decls != nil {
				files, info = v.src.usedPart(used)
				if v == u {
					files, info = v.src.initializedPart(used)
				}
			}
		}
		if v == u && cellTypes != nil {
			files = append(slices.Clip(files), conversionFile(u.pkg, info, cellTypes))
		}
		built[v] = prog.CreatePackage(v.pkg, files, info, false)
	}
	prog.Build()
	if !redirectFeature.available() {
		return built, refuseNilEntries(prog)
	}
	return built, nil
}

// checkMethods returns an error if a unit that mentions cellTypes types of cells, with newMethods new methods, cannot
// be built. Compiled code calls methods of cells through a table of fixed size. ixgo ends the process when it is full.
func checkMethods(cellTypes, newMethods int) error {
	if newMethods > 0 && !invokeFeature.available() || cellTypes > 0 && !typeFeature.available() {
		return errors.New("types of cells need what this kernel lacks (see what it said at first)")
	}
	if size, _, free := ixgo.IcallStat(); newMethods > 0 && newMethods+spareMethods > free {
		return fmt.Errorf("the kernel has no room for %d more methods of types that cells declare (%d in all): "+
			"restart it", newMethods, size)
	}
	return nil
}

// bindEarlierVariables connects a unit with existing variables: those of the units it is built with, and those that it
// declares again.
func (e *Engine) bindEarlierVariables(u *unit, built map[*unit]*ssa.Package, ctx *ixgo.Context) {
	e.loader.mu.Lock()
	clear(e.loader.cellPackages)
	for v, ssaPkg := range built {
		if v == u {
			continue
		}
		if v.src == nil || v.src.decls == nil {
			ssaPkg.Func("init").Blocks = nil // the unit was initialized when it ran
		}
		vars := &ixgo.Package{Path: mainPath, Name: "main", Vars: v.vars}
		e.loader.cellPackages[unsafe.StringData(v.pkg.Path())] = vars
	}
	e.loader.pendingTypes = nil
	e.loader.mu.Unlock()
	for name, old := range u.redeclared { // the variable keeps its address
		ptr := e.units[old.Pkg()].vars[old.Name()]
		if !u.hasInitializer(name) {
			ptr.Elem().SetZero()
		}
		ctx.RegisterExternal(mainPath+"."+name, ptr.Interface())
	}
}

// cellTypes returns all types of cells that a unit mentions, and the number of table entries that the methods of the
// new ones among them need: for each method one for the value and one for the pointer receiver. used are the objects of
// interpreted packages that are compiled with the unit.
func (e *Engine) cellTypes(u *unit, used set[types.Object]) (mentioned []types.Type, methods int) {
	walker := typeWalker{onNamed: func(n *types.Named) {
		if !isOfCell(n.Obj()) && e.units[n.Obj().Pkg()] == nil || types.IsInterface(n) || isGeneric(n) {
			return
		}
		mentioned = append(mentioned, n)
		if _, isKnown := e.loader.cellTypes.At(n).(reflect.Type); !isKnown {
			methods += 2 * types.NewMethodSet(types.NewPointer(n)).Len()
		}
	}}
	for o := range used {
		if t, ok := o.(*types.TypeName); ok {
			walker.visit(t.Type())
		}
	}
	if u.src.decls != nil {
		return mentioned, methods
	}
	for _, t := range u.src.info.Types {
		walker.visit(t.Type)
	}
	for _, o := range u.src.info.Defs {
		if o != nil {
			walker.visit(o.Type())
		}
	}
	return mentioned, methods
}

// conversionFile returns a file with one function, which is never called and converts pointers to the given types to
// interfaces. ixgo compiles the methods of a type only if the unit converts it to an interface; later units and
// compiled code call these methods.
func conversionFile(p *types.Package, info *types.Info, converted []types.Type) *ast.File {
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
	for _, t := range converted {
		x, def := types.NewVar(token.NoPos, p, "x", types.NewPointer(t)), ast.NewIdent("x")
		info.Defs[def] = x
		call.Args = append(call.Args, ident("x", x))
		body.List = append(body.List, &ast.DeclStmt{Decl: &ast.GenDecl{Tok: token.VAR,
			Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{def}}}}})
	}
	body.List = append(body.List, &ast.ExprStmt{X: call})
	name, param := ast.NewIdent(ReservedPrefix+"types"), ast.NewIdent("take")
	info.Defs[param] = take
	info.Defs[name] = types.NewFunc(token.NoPos, p, name.Name,
		types.NewSignatureType(nil, nil, nil, types.NewTuple(take), nil, false))
	params := &ast.FieldList{List: []*ast.Field{{Names: []*ast.Ident{param}}}}
	return &ast.File{Name: ast.NewIdent(p.Name()), Decls: []ast.Decl{
		&ast.FuncDecl{Name: name, Type: &ast.FuncType{Params: params}, Body: body}}}
}

// spareMethods is the number of method table entries reserved for types that are discovered during compilation. A
// smaller value risks that the table overflows, which ends the process; a larger one refuses cells earlier.
const spareMethods = 100

// isGeneric reports whether a type has uninstantiated type parameters: its own, or those of the function in which it is
// declared.
func isGeneric(t types.Type) (hasParam bool) {
	walker := typeWalker{onTypeParam: func() { hasParam = true }}
	walker.onNamed = func(n *types.Named) {
		if o := n.Obj(); o.Pkg() != nil && o.Pkg().Scope().Lookup(o.Name()) != o {
			walker.visit(n.Underlying())
		}
	}
	if n, ok := t.(*types.Named); ok && n.TypeParams().Len() > n.TypeArgs().Len() {
		return true
	}
	walker.visit(t)
	return hasParam
}

// collectDependencies adds a unit and its direct and indirect dependencies to units, and the packages that they use to
// pkgs.
func (e *Engine) collectDependencies(u *unit, units set[*unit], pkgs set[*types.Package]) {
	if units[u] {
		return
	}
	units[u] = true
	for p := range u.packages {
		e.collectPackages(p, pkgs)
	}
	for v := range u.dependencies {
		e.collectDependencies(v, units, pkgs)
	}
}

// collectPackages adds a package to pkgs and, if it is interpreted from source, also its direct and indirect imports.
func (e *Engine) collectPackages(p *types.Package, pkgs set[*types.Package]) {
	if pkgs[p] {
		return
	}
	pkgs[p] = true
	if e.packageSyntax(p) != nil {
		for _, q := range p.Imports() {
			e.collectPackages(q, pkgs)
		}
	}
}

// hasInitializer reports whether the declaration of a variable has an initial value.
func (u *unit) hasInitializer(name string) bool {
	for _, init := range u.src.info.InitOrder {
		for _, v := range init.Lhs {
			if v.Name() == name {
				return true
			}
		}
	}
	return false
}

// release frees the memory of a unit after its execution. If there are more units than e.sweepThreshold, it also
// removes those that are no longer reachable.
func (e *Engine) release(u *unit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	u.interp, u.lines, u.redeclared = nil, nil, nil
	hasFunctions := false
	for _, d := range u.src.files[0].Decls {
		f, ok := d.(*ast.FuncDecl)
		hasFunctions = hasFunctions || ok && f.Name.Name != runFunc && f.Name.Name != "init"
	}
	if !hasFunctions {
		u.src = nil
		walker := e.dependencyWalker(u) // declared types may have promoted methods from other units
		walker.intoCells = true
		for _, name := range u.pkg.Scope().Names() {
			walker.visit(u.pkg.Scope().Lookup(name).Type())
		}
	}
	if e.units[u.pkg] == nil && u.declaredNames == nil {
		return
	}
	if len(e.units) > e.sweepThreshold {
		e.sweep()
		e.sweepThreshold = 2*len(e.units) + 50 // so that the time for sweeps grows only linearly with the number of units
	}
}

// sweep removes the units that no visible name and no interpreted package refers to.
func (e *Engine) sweep() {
	live := map[*types.Package]*unit{}
	var mark func(u *unit)
	walker := typeWalker{intoCells: true, onNamed: func(t *types.Named) { mark(e.units[t.Obj().Pkg()]) }}
	mark = func(u *unit) {
		if u == nil || live[u.pkg] != nil {
			return
		}
		live[u.pkg] = u
		for v := range u.dependencies {
			mark(v)
		}
		for _, name := range u.pkg.Scope().Names() {
			walker.visit(u.pkg.Scope().Lookup(name).Type())
		}
	}
	for _, o := range e.visible.names {
		mark(e.units[o.Pkg()])
	}
	for _, u := range e.sourceUnits {
		mark(u)
	}
	e.units = live
}
