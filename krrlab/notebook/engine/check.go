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

// source is what go/types made of a unit.
type source struct {
	files []*ast.File
	info  *types.Info
	at    map[types.Object]ast.Node // of a package: where its functions, methods and types are declared
}

func newInfo() *types.Info {
	return &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses:      map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Scopes: map[ast.Node]*types.Scope{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
		Instances:  map[*ast.Ident]types.Instance{}, FileVersions: map[*ast.File]string{},
	}
}

// check checks a file as a unit.
func (e *Engine) check(file *ast.File, sees view) (*unit, error) {
	u := &unit{src: &source{files: []*ast.File{file}, info: newInfo()}, vars: map[string]reflect.Value{}}
	if err := e.types(u.src, sees); err != nil {
		return nil, err
	}
	methodValues(file, u.src.info)
	u.pkg = e.moved()
	return u, nil
}

// types checks the file of a unit within what it sees.
func (e *Engine) types(src *source, sees view) error {
	outer := types.NewScope(types.Universe, 0, 0, "session")
	for _, o := range sees.names {
		outer.Insert(o)
	}
	for name, path := range sees.imports {
		if p, err := (importer{e}).Import(path); err == nil {
			outer.Insert(types.NewPkgName(token.NoPos, e.pkg, name, p))
		}
	}
	*e.pkg.Scope() = *types.NewScope(outer, 0, 0, "unit")
	e.pkg.SetImports(nil)
	return e.checked(e.pkg, src, "")
}

// checked lets go/types check the files of a package in a version of the language, and returns the first of its errors.
// Variables, labels and imports that are not used are none.
func (e *Engine) checked(p *types.Package, src *source, version string) (first error) {
	conf := types.Config{Importer: importer{e}, Sizes: types.SizesFor("gc", runtime.GOARCH), GoVersion: version,
		Error: func(err error) {
			te, ok := err.(types.Error)
			if first == nil && !(ok && te.Soft && strings.Contains(te.Msg, "and not used")) {
				first = err
			}
		}}
	_ = types.NewChecker(&conf, e.fset, p, src.info).Files(src.files)
	return first
}

// moved moves what was checked into a separate package. All are checked in the same one, for
// go/types keeps the fields of a type from literals of another package.
func (e *Engine) moved() *types.Package {
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

// setPackage makes an object one of another package.
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

// keepDefers puts an empty deferred call at the head of functions that defer: where they do so in loops over functions,
// x/tools does not see it, and their deferred calls would not run.
func keepDefers(file *ast.File) {
	bodies := map[*ast.BlockStmt]bool{}
	ast.PreorderStack(file, nil, func(n ast.Node, within []ast.Node) bool {
		if _, ok := n.(*ast.DeferStmt); ok {
			for _, f := range slices.Backward(within) {
				if lit, ok := f.(*ast.FuncLit); ok {
					bodies[lit.Body] = true
					break
				} else if fn, ok := f.(*ast.FuncDecl); ok && fn.Name.Name != runName {
					bodies[fn.Body] = true
				}
			}
		}
		return true
	})
	for body := range bodies {
		at := body.Lbrace
		empty := &ast.FuncLit{Type: &ast.FuncType{Func: at, Params: &ast.FieldList{}},
			Body: &ast.BlockStmt{Lbrace: at, Rbrace: at}}
		call := &ast.CallExpr{Fun: empty, Lparen: at, Rparen: at}
		body.List = append([]ast.Stmt{&ast.DeferStmt{Defer: at, Call: call}}, body.List...)
	}
}

// needed returns a walker that notes what a unit needs of the types it visits.
func (e *Engine) needed(u *unit) typeWalker {
	u.needs, u.pkgs = map[*unit]bool{}, map[*types.Package]bool{}
	return typeWalker{seen: map[types.Type]bool{}, pkg: func(p *types.Package) {
		if v := e.units[p]; v != nil {
			u.needs[v] = true
		} else if p != u.pkg && e.source(p) != nil {
			u.pkgs[p] = true
		}
	}}
}

// needs finds the units and packages that a unit uses.
func (e *Engine) needs(u *unit) {
	w := e.needed(u)
	object := func(o types.Object) {
		if o == nil || o.Pkg() == nil || o.Pkg() == u.pkg {
			return
		}
		w.visit(o.Type())
		if v := e.units[o.Pkg()]; v != nil {
			u.needs[v] = true
			return
		}
		switch o := o.(type) {
		case *types.Func:
			u.pkgs[o.Pkg()] = true
		case *types.Var:
			if !o.IsField() {
				u.pkgs[o.Pkg()] = true
			}
		}
	}
	for _, o := range u.src.info.Uses {
		object(o)
	}
	for _, s := range u.src.info.Selections {
		object(s.Obj())
	}
	for _, t := range u.src.info.Types {
		w.visit(t.Type)
	}
	for _, p := range u.pkg.Imports() {
		u.pkgs[p] = true
	}
}

// typeWalker finds the packages of the types within a type.
type typeWalker struct {
	seen  map[types.Type]bool
	pkg   func(*types.Package) // these may be nil
	named func(*types.Named)
	param func()
	deep  bool // look into types of cells
}

func (w typeWalker) visit(t types.Type) {
	if t == nil || w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil && w.pkg != nil {
			w.pkg(p)
		}
		if w.named != nil {
			w.named(t)
		}
		if p := t.Obj().Pkg(); w.deep && p != nil && p.Path() == mainPath {
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
		if w.param != nil {
			w.param()
		}
		w.visit(t.Constraint())
	case *types.Union:
		for term := range t.Terms() {
			w.visit(term.Type())
		}
	}
}

// source returns a package that is interpreted from its source.
func (e *Engine) source(p *types.Package) *source {
	if sp := e.base.SourcePackage(p.Path()); sp != nil && sp.Package == p && sp.Loaded() {
		return &source{files: sp.Files, info: sp.Info}
	}
	return nil
}

// methodValues turns defer x.M(a) and go x.M(a), where x is an interface, into a call of the value x.M, which finds the
// methods of all types (see invokes).
func methodValues(file *ast.File, info *types.Info) {
	change := func(list []ast.Stmt) {
		for i, st := range list {
			var call *ast.CallExpr
			switch st := st.(type) {
			case *ast.DeferStmt:
				call = st.Call
			case *ast.GoStmt:
				call = st.Call
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
			list[i] = &ast.BlockStmt{Lbrace: st.Pos(), Rbrace: st.End(), List: []ast.Stmt{
				&ast.AssignStmt{Lhs: []ast.Expr{id}, TokPos: st.Pos(), Tok: token.DEFINE, Rhs: []ast.Expr{sel}}, st}}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			change(n.List)
		case *ast.CaseClause:
			change(n.Body)
		case *ast.CommClause:
			change(n.Body)
		}
		return true
	})
}
