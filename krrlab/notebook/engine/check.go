package engine

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// syntax is the syntax of a unit (a separately compiled piece of a cell, or an interpreted package) and the result of
// type-checking it.
type syntax struct {
	files []*ast.File
	info  *types.Info
	decls map[types.Object]ast.Node // for interpreted packages: declarations of functions, methods and types
}

// newInfo returns an empty types.Info in which go/types records everything that this package and ssa need.
func newInfo() *types.Info {
	return &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses:      map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Scopes: map[ast.Node]*types.Scope{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
		Instances:  map[*ast.Ident]types.Instance{}, FileVersions: map[*ast.File]string{},
	}
}

// checkUnit type-checks a file as a new unit, in which the visible names can be used. It changes the file as
// bindMethodValues does.
func (e *Engine) checkUnit(file *ast.File, visible namespace) (*unit, error) {
	u := &unit{src: &syntax{files: []*ast.File{file}, info: newInfo()}, vars: map[string]reflect.Value{}}
	if err := e.checkInNamespace(u.src, visible); err != nil {
		return nil, err
	}
	bindMethodValues(file, u.src.info)
	u.pkg = e.detachPackage()
	return u, nil
}

// checkInNamespace type-checks the file of a unit in the package e.pkg, with the visible names in the surrounding
// scope.
func (e *Engine) checkInNamespace(src *syntax, visible namespace) error {
	session := types.NewScope(types.Universe, 0, 0, "session")
	for _, obj := range visible.names {
		session.Insert(obj)
	}
	for name, path := range visible.imports {
		if pkg, err := (importer{e}).Import(path); err == nil {
			session.Insert(types.NewPkgName(token.NoPos, e.pkg, name, pkg))
		}
	}
	*e.pkg.Scope() = *types.NewScope(session, 0, 0, "unit")
	e.pkg.SetImports(nil)
	return e.typeCheck(e.pkg, src, "")
}

// typeCheck type-checks the files of a package for a version of the language. It returns the first error, ignoring
// unused variables, labels and imports.
func (e *Engine) typeCheck(pkg *types.Package, src *syntax, version string) (firstErr error) {
	conf := types.Config{Importer: importer{e}, Sizes: types.SizesFor("gc", runtime.GOARCH), GoVersion: version,
		Error: func(err error) {
			typeErr, ok := err.(types.Error)
			if firstErr == nil && !(ok && typeErr.Soft && strings.Contains(typeErr.Msg, "and not used")) {
				firstErr = err
			}
		}}
	_ = types.NewChecker(&conf, e.fset, pkg, src.info).Files(src.files)
	return firstErr
}

// detachPackage moves the objects of e.pkg into a new package and returns it. All units are checked in the same package
// e.pkg, because go/types rejects unexported fields in composite literals of another package's struct type.
func (e *Engine) detachPackage() *types.Package {
	pkg := newPackage()
	pkg.SetImports(e.pkg.Imports())
	scope := e.pkg.Scope()
	for _, name := range scope.Names() {
		obj := scope.Lookup(name)
		setPackage(obj, pkg)
		pkg.Scope().Insert(obj)
		if named, ok := obj.Type().(*types.Named); ok && named.Obj() == obj {
			for method := range named.Methods() {
				setPackage(method, pkg)
			}
		}
	}
	return pkg
}

// setPackage changes the package of an object to pkg.
func setPackage(obj types.Object, pkg *types.Package) {
	switch obj := obj.(type) {
	case *types.Const:
		*obj = *types.NewConst(obj.Pos(), pkg, obj.Name(), obj.Type(), obj.Val())
	case *types.Func:
		*obj = *types.NewFunc(obj.Pos(), pkg, obj.Name(), obj.Signature())
	case *types.TypeName:
		*obj = *types.NewTypeName(obj.Pos(), pkg, obj.Name(), obj.Type())
	case *types.Var:
		*obj = *types.NewVar(obj.Pos(), pkg, obj.Name(), obj.Type())
	}
}

// ensureDefers inserts an empty deferred call at the start of each function that contains a defer statement. Package
// golang.org/x/tools/go/ssa overlooks defer statements in range-over-func loops. In a function without another defer
// statement, the deferred calls would not run.
func ensureDefers(file *ast.File) {
	bodies := map[*ast.BlockStmt]bool{}
	ast.PreorderStack(file, nil, func(n ast.Node, ancestors []ast.Node) bool {
		if _, ok := n.(*ast.DeferStmt); ok {
			for _, f := range slices.Backward(ancestors) {
				if lit, ok := f.(*ast.FuncLit); ok {
					bodies[lit.Body] = true
					break
				} else if fn, ok := f.(*ast.FuncDecl); ok && fn.Name.Name != runFunc {
					bodies[fn.Body] = true
				}
			}
		}
		return true
	})
	for body := range bodies {
		lbrace := body.Lbrace
		empty := &ast.FuncLit{Type: &ast.FuncType{Func: lbrace, Params: &ast.FieldList{}},
			Body: &ast.BlockStmt{Lbrace: lbrace, Rbrace: lbrace}}
		call := &ast.CallExpr{Fun: empty, Lparen: lbrace, Rparen: lbrace}
		body.List = append([]ast.Stmt{&ast.DeferStmt{Defer: lbrace, Call: call}}, body.List...)
	}
}

// dependencyWalker clears the dependencies of a unit and returns a walker that adds those of the types it visits.
func (e *Engine) dependencyWalker(u *unit) *typeWalker {
	u.dependencies, u.packages = set[*unit]{}, set[*types.Package]{}
	return &typeWalker{onNamed: func(t *types.Named) {
		pkg := t.Obj().Pkg() // nil for the type error
		if dep := e.units[pkg]; dep != nil {
			u.dependencies[dep] = true
		} else if pkg != nil && pkg != u.pkg && e.packageSyntax(pkg) != nil {
			u.packages[pkg] = true
		}
	}}
}

// findDependencies sets the units and packages that a unit uses.
func (e *Engine) findDependencies(u *unit) {
	walker := e.dependencyWalker(u)
	addObject := func(obj types.Object) {
		if obj == nil || obj.Pkg() == nil || obj.Pkg() == u.pkg {
			return
		}
		walker.visit(obj.Type())
		if dep := e.units[obj.Pkg()]; dep != nil {
			u.dependencies[dep] = true
			return
		}
		switch obj := obj.(type) {
		case *types.Func:
			u.packages[obj.Pkg()] = true
		case *types.Var:
			if !obj.IsField() {
				u.packages[obj.Pkg()] = true
			}
		}
	}
	for _, obj := range u.src.info.Uses {
		addObject(obj)
	}
	for _, selection := range u.src.info.Selections {
		addObject(selection.Obj())
	}
	for _, t := range u.src.info.Types {
		walker.visit(t.Type)
	}
	for _, pkg := range u.pkg.Imports() {
		u.packages[pkg] = true
	}
}

// typeWalker visits a type and all types it is composed of, each once. The callbacks may be nil.
type typeWalker struct {
	visited     map[types.Type]bool // types visited so far
	onNamed     func(*types.Named)  // called with each named type
	onTypeParam func()              // called for each type parameter
	intoCells   bool                // also visit the underlying types and methods of types that cells declare
}

// visit visits a type, which may be nil.
func (walker *typeWalker) visit(t types.Type) {
	if t == nil || walker.visited[t] {
		return
	}
	if walker.visited == nil {
		walker.visited = map[types.Type]bool{}
	}
	walker.visited[t] = true
	switch t := t.(type) {
	case *types.Named:
		if walker.onNamed != nil {
			walker.onNamed(t)
		}
		if walker.intoCells && isDeclaredByCell(t.Obj()) {
			walker.visit(t.Underlying())
			for m := range t.Methods() {
				walker.visit(m.Type())
			}
		}
		for a := range t.TypeArgs().Types() {
			walker.visit(a)
		}
	case *types.Alias:
		walker.visit(types.Unalias(t))
	case *types.Map:
		walker.visit(t.Key())
		walker.visit(t.Elem())
	case interface{ Elem() types.Type }:
		walker.visit(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			walker.visit(v.Type())
		}
	case *types.Signature:
		walker.visit(t.Params())
		walker.visit(t.Results())
	case *types.Struct:
		for f := range t.Fields() {
			walker.visit(f.Type())
		}
	case *types.Interface:
		for m := range t.Methods() {
			walker.visit(m.Type())
		}
	case *types.TypeParam:
		if walker.onTypeParam != nil {
			walker.onTypeParam()
		}
		walker.visit(t.Constraint())
	case *types.Union:
		for term := range t.Terms() {
			walker.visit(term.Type())
		}
	}
}

// packageSyntax returns the syntax of a package that ixgo interprets from its source, or nil if pkg is compiled.
func (e *Engine) packageSyntax(pkg *types.Package) *syntax {
	if src := e.loader.base.SourcePackage(pkg.Path()); src != nil && src.Package == pkg && src.Loaded() {
		return &syntax{files: src.Files, info: src.Info}
	}
	return nil
}

// bindMethodValues rewrites defer x.M(a) and go x.M(a), where x is an interface, to f := x.M; defer f(a) (or go f(a)).
// The method value finds the methods of all types (see fixInvokes).
func bindMethodValues(file *ast.File, info *types.Info) {
	rewrite := func(list []ast.Stmt) {
		for i, stmt := range list {
			var call *ast.CallExpr
			switch stmt := stmt.(type) {
			case *ast.DeferStmt:
				call = stmt.Call
			case *ast.GoStmt:
				call = stmt.Call
			default:
				continue
			}
			sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
			if !ok || info.Selections[sel] == nil || !types.IsInterface(info.Selections[sel].Recv()) {
				continue
			}
			definition, use := &ast.Ident{Name: "f", NamePos: sel.Pos()}, &ast.Ident{Name: "f", NamePos: sel.Pos()}
			v := types.NewVar(sel.Pos(), info.Selections[sel].Obj().Pkg(), "f", info.TypeOf(sel))
			info.Defs[definition], info.Uses[use] = v, v
			typeAndValue := info.Types[sel]
			info.Types[use] = typeAndValue
			call.Fun = use
			assign := &ast.AssignStmt{Lhs: []ast.Expr{definition}, TokPos: stmt.Pos(), Tok: token.DEFINE,
				Rhs: []ast.Expr{sel}}
			list[i] = &ast.BlockStmt{Lbrace: stmt.Pos(), Rbrace: stmt.End(), List: []ast.Stmt{assign, stmt}}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			rewrite(n.List)
		case *ast.CaseClause:
			rewrite(n.Body)
		case *ast.CommClause:
			rewrite(n.Body)
		}
		return true
	})
}
