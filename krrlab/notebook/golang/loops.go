package golang

import (
	"go/ast"
	"go/token"
)

// ownVariables gives each iteration of a loop variables of its own where a function literal or a pointer keeps
// them, as Go does since 1.22: the interpreter has one for all iterations. It reports the variable
// of a loop for which that cannot be done, since its body changes what the next iteration starts from.
func ownVariables(st ast.Stmt) (shared *ast.Ident) {
	var names []*ast.Ident
	var body *ast.BlockStmt
	counted := false
	switch st := st.(type) {
	case *ast.RangeStmt:
		if st.Tok != token.DEFINE {
			return nil
		}
		for _, e := range []ast.Expr{st.Key, st.Value} {
			if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
				names = append(names, id)
			}
		}
		body = st.Body
	case *ast.ForStmt:
		init, ok := st.Init.(*ast.AssignStmt)
		if !ok || init.Tok != token.DEFINE {
			return nil
		}
		for _, e := range init.Lhs {
			if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
				names = append(names, id)
			}
		}
		body, counted = st.Body, true
	default:
		return nil
	}
	var own []*ast.Ident
	for _, id := range names {
		if !kept(body, id.Name) {
			continue
		}
		if counted && changed(body, id.Name) {
			shared = id
			continue
		}
		own = append(own, id)
	}
	if len(own) == 0 {
		return shared
	}
	copies := &ast.AssignStmt{Tok: token.DEFINE, TokPos: body.Lbrace}
	for _, id := range own {
		copies.Lhs = append(copies.Lhs, &ast.Ident{Name: id.Name, NamePos: body.Lbrace})
		copies.Rhs = append(copies.Rhs, &ast.Ident{Name: id.Name, NamePos: body.Lbrace})
	}
	body.List = append([]ast.Stmt{copies}, body.List...)
	return shared
}

// kept reports whether a function literal in the body uses a variable, or its address is taken.
func kept(body ast.Node, name string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			found = found || uses(n.Body, name)
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && uses(n.X, name)
		}
		return !found
	})
	return found
}

// uses reports whether a name stands in a node other than behind a dot.
func uses(node ast.Node, name string) (found bool) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			found = found || uses(n.X, name)
			return false
		case *ast.Ident:
			found = found || n.Name == name
		}
		return !found
	})
	return found
}

// changed reports whether something in the body may assign to a variable.
func changed(body ast.Node, name string) (found bool) {
	is := func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && id.Name == name
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				found = found || n.Tok != token.DEFINE && is(e)
			}
		case *ast.IncDecStmt:
			found = found || is(n.X)
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && is(n.X)
		case *ast.RangeStmt:
			found = found || n.Tok == token.ASSIGN && (is(n.Key) || is(n.Value))
		}
		return !found
	})
	return found
}
