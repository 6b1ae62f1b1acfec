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
	for _, o := range visible.names {
		session.Insert(o)
	}
	for name, path := range visible.imports {
		if p, err := (importer{e}).Import(path); err == nil {
			session.Insert(types.NewPkgName(token.NoPos, e.pkg, name, p))
		}
	}
	*e.pkg.Scope() = *types.NewScope(session, 0, 0, "unit")
	e.pkg.SetImports(nil)
	return e.typeCheck(e.pkg, src, "")
}

// typeCheck type-checks the files of a package for a version of the language. It returns the first error, ignoring
// unused variables, labels and imports.
func (e *Engine) typeCheck(p *types.Package, src *syntax, version string) (firstErr error) {
	conf := types.Config{Importer: importer{e}, Sizes: types.SizesFor("gc", runtime.GOARCH), GoVersion: version,
		Error: func(err error) {
			typeErr, ok := err.(types.Error)
			if firstErr == nil && !(ok && typeErr.Soft && strings.Contains(typeErr.Msg, "and not used")) {
				firstErr = err
			}
		}}
	_ = types.NewChecker(&conf, e.fset, p, src.info).Files(src.files)
	return firstErr
}

// detachPackage moves the objects of e.pkg into a new package and returns it. All units are checked in the same package
// e.pkg, because go/types rejects unexported fields in composite literals of another package's struct type.
func (e *Engine) detachPackage() *types.Package {
	p := newPackage()
	p.SetImports(e.pkg.Imports())
	scope := e.pkg.Scope()
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		setPackage(o, p)
		p.Scope().Insert(o)
		if n, ok := o.Type().(*types.Named); ok && n.Obj() == o {
			for m := range n.Methods() {
				setPackage(m, p)
			}
		}
	}
	return p
}

// setPackage changes the package of an object to p.
func setPackage(o types.Object, p *types.Package) {
	switch o := o.(type) {
	case *types.Const:
		*o = *types.NewConst(o.Pos(), p, o.Name(), o.Type(), o.Val())
	case *types.Func:
		*o = *types.NewFunc(o.Pos(), p, o.Name(), o.Signature())
	case *types.TypeName:
		*o = *types.NewTypeName(o.Pos(), p, o.Name(), o.Type())
	case *types.Var:
		*o = *types.NewVar(o.Pos(), p, o.Name(), o.Type())
	}
}

// ensureDefers inserts an empty deferred call at the start of each function that contains a defer statement. x/tools
// overlooks defer statements in range-over-func loops; in a function without any other, the deferred calls would not
// run.
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
		p := t.Obj().Pkg() // nil for the type error
		if v := e.units[p]; v != nil {
			u.dependencies[v] = true
		} else if p != nil && p != u.pkg && e.packageSyntax(p) != nil {
			u.packages[p] = true
		}
	}}
}

// findDependencies sets the units and packages that a unit uses.
func (e *Engine) findDependencies(u *unit) {
	walker := e.dependencyWalker(u)
	addObject := func(o types.Object) {
		if o == nil || o.Pkg() == nil || o.Pkg() == u.pkg {
			return
		}
		walker.visit(o.Type())
		if v := e.units[o.Pkg()]; v != nil {
			u.dependencies[v] = true
			return
		}
		switch o := o.(type) {
		case *types.Func:
			u.packages[o.Pkg()] = true
		case *types.Var:
			if !o.IsField() {
				u.packages[o.Pkg()] = true
			}
		}
	}
	for _, o := range u.src.info.Uses {
		addObject(o)
	}
	for _, s := range u.src.info.Selections {
		addObject(s.Obj())
	}
	for _, t := range u.src.info.Types {
		walker.visit(t.Type)
	}
	for _, p := range u.pkg.Imports() {
		u.packages[p] = true
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
func (w *typeWalker) visit(t types.Type) {
	if t == nil || w.visited[t] {
		return
	}
	if w.visited == nil {
		w.visited = map[types.Type]bool{}
	}
	w.visited[t] = true
	switch t := t.(type) {
	case *types.Named:
		if w.onNamed != nil {
			w.onNamed(t)
		}
		if w.intoCells && isOfCell(t.Obj()) {
			w.visit(t.Underlying())
			for m := range t.Methods() {
				w.visit(m.Type())
			}
		}
		for a := range t.TypeArgs().Types() {
			w.visit(a)
		}
	case *types.Alias:
		w.visit(types.Unalias(t))
	case *types.Map:
		w.visit(t.Key())
		w.visit(t.Elem())
	case interface{ Elem() types.Type }:
		w.visit(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			w.visit(v.Type())
		}
	case *types.Signature:
		w.visit(t.Params())
		w.visit(t.Results())
	case *types.Struct:
		for f := range t.Fields() {
			w.visit(f.Type())
		}
	case *types.Interface:
		for m := range t.Methods() {
			w.visit(m.Type())
		}
	case *types.TypeParam:
		if w.onTypeParam != nil {
			w.onTypeParam()
		}
		w.visit(t.Constraint())
	case *types.Union:
		for term := range t.Terms() {
			w.visit(term.Type())
		}
	}
}

// packageSyntax returns the syntax of a package that ixgo interprets from its source, or nil if p is compiled.
func (e *Engine) packageSyntax(p *types.Package) *syntax {
	if sp := e.loader.base.SourcePackage(p.Path()); sp != nil && sp.Package == p && sp.Loaded() {
		return &syntax{files: sp.Files, info: sp.Info}
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
			id, use := &ast.Ident{Name: "f", NamePos: sel.Pos()}, &ast.Ident{Name: "f", NamePos: sel.Pos()}
			v := types.NewVar(sel.Pos(), info.Selections[sel].Obj().Pkg(), "f", info.TypeOf(sel))
			info.Defs[id], info.Uses[use] = v, v
			tv := info.Types[sel]
			info.Types[use] = tv
			call.Fun = use
			assign := &ast.AssignStmt{Lhs: []ast.Expr{id}, TokPos: stmt.Pos(), Tok: token.DEFINE, Rhs: []ast.Expr{sel}}
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
