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
	ssaPackages, err := e.buildSSA(u)
	if err != nil {
		return err
	}
	ctx := e.newContext()
	e.bindEarlierVariables(u, ssaPackages, ctx)
	interp, err := ctx.NewInterp(ssaPackages[u])
	if err != nil {
		return err
	}
	e.patchCode(u, interp)
	if typeFeature.available() {
		e.loader.recordTypes(*fieldAddr[*ixgo.TypesRecord](interp, recordField))
	}
	for name := range ssaPackages[u].Members {
		if ptr, ok := interp.GetVarAddr(name); ok {
			u.vars[name] = reflect.ValueOf(ptr)
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
	ssaPackages := map[*unit]*ssa.Package{}
	for dep := range units {
		var files []*ast.File
		var info *types.Info
		if dep.src != nil {
			files, info = dep.src.files, dep.src.info
			if dep.src.decls != nil {
				files, info = dep.src.usedPart(used)
				if dep == u {
					files, info = dep.src.initializedPart(used)
				}
			}
		}
		if dep == u && cellTypes != nil {
			files = append(slices.Clip(files), conversionFile(u.pkg, info, cellTypes))
		}
		ssaPackages[dep] = prog.CreatePackage(dep.pkg, files, info, false)
	}
	prog.Build()
	if !redirectFeature.available() {
		return ssaPackages, refuseNilEntries(prog)
	}
	return ssaPackages, nil
}

// checkMethods returns an error if a unit cannot be built that mentions cellTypeCount types of cells, of which the new
// ones have newMethodCount methods. Compiled code calls methods of cells through a table of fixed size. ixgo ends the
// process when it is full.
func checkMethods(cellTypeCount, newMethodCount int) error {
	if newMethodCount > 0 && !invokeFeature.available() || cellTypeCount > 0 && !typeFeature.available() {
		return errors.New("types of cells need what this kernel lacks (see what it said at first)")
	}
	if capacity, _, free := ixgo.IcallStat(); newMethodCount > 0 && newMethodCount+spareMethods > free {
		return fmt.Errorf("the kernel has no room for %d more methods of types that cells declare (%d in all): "+
			"restart it", newMethodCount, capacity)
	}
	return nil
}

// bindEarlierVariables connects a unit with existing variables: those of the units it is built with, and those that it
// declares again.
func (e *Engine) bindEarlierVariables(u *unit, ssaPackages map[*unit]*ssa.Package, ctx *ixgo.Context) {
	e.loader.mu.Lock()
	clear(e.loader.cellPackages)
	for dep, ssaPkg := range ssaPackages {
		if dep == u {
			continue
		}
		if dep.src == nil || dep.src.decls == nil {
			ssaPkg.Func("init").Blocks = nil // the unit was initialized when it ran
		}
		vars := &ixgo.Package{Path: mainPath, Name: "main", Vars: dep.vars}
		e.loader.cellPackages[unsafe.StringData(dep.pkg.Path())] = vars
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
		if !isDeclaredByCell(n.Obj()) && e.units[n.Obj().Pkg()] == nil || types.IsInterface(n) || isGeneric(n) {
			return
		}
		mentioned = append(mentioned, n)
		if _, isKnown := e.loader.cellTypes.At(n).(reflect.Type); !isKnown {
			methods += 2 * types.NewMethodSet(types.NewPointer(n)).Len()
		}
	}}
	for obj := range used {
		if t, ok := obj.(*types.TypeName); ok {
			walker.visit(t.Type())
		}
	}
	if u.src.decls != nil {
		return mentioned, methods
	}
	for _, t := range u.src.info.Types {
		walker.visit(t.Type)
	}
	for _, obj := range u.src.info.Defs {
		if obj != nil {
			walker.visit(obj.Type())
		}
	}
	return mentioned, methods
}

// conversionFile returns a file with one function, which is never called and converts pointers to the given types to
// interfaces:
//
//	func krrlab_types(take func(...any)) { var x *T1; var x *T2; take(x, x) }
//
// The variables have equal names, but are different objects in info. ixgo compiles the methods of a type only if the
// unit converts the type to an interface; later units and compiled code call these methods.
func conversionFile(pkg *types.Package, info *types.Info, converted []types.Type) *ast.File {
	ident := func(name string, obj types.Object) *ast.Ident {
		use := ast.NewIdent(name)
		info.Uses[use] = obj
		return use
	}
	anySlice := types.NewVar(token.NoPos, pkg, "", types.NewSlice(types.Universe.Lookup("any").Type()))
	take := types.NewParam(token.NoPos, pkg, "take",
		types.NewSignatureType(nil, nil, nil, types.NewTuple(anySlice), nil, true))
	call := &ast.CallExpr{Fun: ident("take", take)}
	info.Types[call] = types.TypeAndValue{Type: types.NewTuple()}
	body := &ast.BlockStmt{}
	for _, typ := range converted {
		variable, varName := types.NewVar(token.NoPos, pkg, "x", types.NewPointer(typ)), ast.NewIdent("x")
		info.Defs[varName] = variable
		call.Args = append(call.Args, ident("x", variable))
		body.List = append(body.List, &ast.DeclStmt{Decl: &ast.GenDecl{Tok: token.VAR,
			Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{varName}}}}})
	}
	body.List = append(body.List, &ast.ExprStmt{X: call})
	funcName, takeParam := ast.NewIdent(ReservedPrefix+"types"), ast.NewIdent("take")
	info.Defs[takeParam] = take
	info.Defs[funcName] = types.NewFunc(token.NoPos, pkg, funcName.Name,
		types.NewSignatureType(nil, nil, nil, types.NewTuple(take), nil, false))
	params := &ast.FieldList{List: []*ast.Field{{Names: []*ast.Ident{takeParam}}}}
	return &ast.File{Name: ast.NewIdent(pkg.Name()), Decls: []ast.Decl{
		&ast.FuncDecl{Name: funcName, Type: &ast.FuncType{Params: params}, Body: body}}}
}

// spareMethods is the number of method table entries reserved for types that are discovered during compilation. A
// smaller value risks that the table overflows, which ends the process; a larger one refuses cells earlier.
const spareMethods = 100

// isGeneric reports whether a type has uninstantiated type parameters: its own, or those of the function in which it is
// declared.
func isGeneric(t types.Type) (hasTypeParam bool) {
	walker := typeWalker{onTypeParam: func() { hasTypeParam = true }}
	walker.onNamed = func(n *types.Named) {
		if obj := n.Obj(); obj.Pkg() != nil && obj.Pkg().Scope().Lookup(obj.Name()) != obj {
			walker.visit(n.Underlying())
		}
	}
	if n, ok := t.(*types.Named); ok && n.TypeParams().Len() > n.TypeArgs().Len() {
		return true
	}
	walker.visit(t)
	return hasTypeParam
}

// collectDependencies adds a unit and its direct and indirect dependencies to units, and the packages that they use to
// pkgs.
func (e *Engine) collectDependencies(u *unit, units set[*unit], pkgs set[*types.Package]) {
	if units[u] {
		return
	}
	units[u] = true
	for pkg := range u.packages {
		e.collectPackages(pkg, pkgs)
	}
	for dep := range u.dependencies {
		e.collectDependencies(dep, units, pkgs)
	}
}

// collectPackages adds a package to pkgs and, if it is interpreted from source, also its direct and indirect imports.
func (e *Engine) collectPackages(pkg *types.Package, pkgs set[*types.Package]) {
	if pkgs[pkg] {
		return
	}
	pkgs[pkg] = true
	if e.packageSyntax(pkg) != nil {
		for _, imported := range pkg.Imports() {
			e.collectPackages(imported, pkgs)
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
// removes the units that are no longer reachable.
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
		for dep := range u.dependencies {
			mark(dep)
		}
		for _, name := range u.pkg.Scope().Names() {
			walker.visit(u.pkg.Scope().Lookup(name).Type())
		}
	}
	for _, obj := range e.visible.names {
		mark(e.units[obj.Pkg()])
	}
	for _, u := range e.sourceUnits {
		mark(u)
	}
	e.units = live
}
