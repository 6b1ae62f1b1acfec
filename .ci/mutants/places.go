package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// mutant is one place of a package, one change of it, and what became of it.
type mutant struct {
	Package, File string
	Line          int
	Func          string // "F" or "T.M"
	Op            string // "boundary", "negate", "logic", "arith", "const", "remove", "append" or "return"
	From, To      string // on one line, cut where they get long
	State         string // "killed", "timed out", "survived" or "unreached"
	By            string `json:",omitempty"` // the test that failed
	Reason        string `json:",omitempty"` // why it may live

	nth     int // of those of its package with this key
	file    string
	line    int // and column: of what the tests must cover
	col     int
	at, end int // text takes the place of these bytes of the file
	text    string
}

func (m *mutant) lives() bool { return m.State != "killed" && m.State != "timed out" }

// key names the place by its text, so that it stays the same when lines move.
func (m *mutant) key() string {
	k := fmt.Sprintf("%s %s %s: %s", m.Package, m.Func, m.Op, m.From)
	if m.To != "" {
		k += " => " + m.To
	}
	return k
}

// draw returns the places by turns of the operators, in the order of the hashes of key and seed.
func draw(places []*mutant, seed int) (out []*mutant) {
	byOp := map[string][]*mutant{}
	hash := map[*mutant]string{}
	for _, m := range places {
		byOp[m.Op] = append(byOp[m.Op], m)
		hash[m] = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%d %d %s", seed, m.nth, m.key())))
	}
	for _, list := range byOp {
		slices.SortFunc(list, func(a, b *mutant) int { return cmp.Compare(hash[a], hash[b]) })
	}
	for turn := 0; len(out) < len(places); turn++ {
		for _, op := range []string{"append", "arith", "boundary", "const", "logic", "negate", "remove", "return"} {
			if turn < len(byOp[op]) {
				out = append(out, byOp[op][turn])
			}
		}
	}
	return out
}

// finder collects the places of one file.
type finder struct {
	pkg   *packages.Package
	name  string
	src   []byte
	fn    string
	path  string
	found []*mutant
}

// find returns the places of a target, in the order of the source. Code outside of functions, texts of errors, String
// methods and capacities stay as they are.
func find(ctx context.Context, t target) (all []*mutant, err error) {
	ps, err := packages.Load(&packages.Config{Context: ctx, Mode: packages.LoadSyntax}, "./"+t.pkg)
	if err != nil {
		return nil, err
	}
	if len(ps[0].Errors) > 0 {
		return nil, ps[0].Errors[0]
	}
	count := map[string]int{}
	for i, name := range ps[0].CompiledGoFiles {
		if len(t.files) > 0 && !slices.Contains(t.files, filepath.Base(name)) {
			continue
		}
		f := &finder{pkg: ps[0], name: name, path: t.pkg}
		if f.src, err = os.ReadFile(name); err != nil {
			return nil, err
		}
		for _, d := range ps[0].Syntax[i].Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && !slices.Contains([]string{"String", "Error", "GoString", "init", "main"}, fn.Name.Name) {
				f.function(fn)
			}
		}
		for _, m := range f.found {
			m.nth = count[m.key()]
			count[m.key()]++
		}
		all = append(all, f.found...)
	}
	return all, nil
}

func (f *finder) offset(p token.Pos) int { return f.pkg.Fset.Position(p).Offset }
func (f *finder) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }

// add adds the place n, covered at pos, where text takes the place of n.
func (f *finder) add(n ast.Node, pos token.Pos, op, from, to, text string) *mutant {
	line := func(s string) string {
		s = strings.Join(strings.Fields(s), " ")
		if r := []rune(s); len(r) > 90 {
			s = string(r[:90]) + "…"
		}
		return s
	}
	at := f.pkg.Fset.Position(pos)
	m := &mutant{Package: f.path, File: filepath.Base(f.name), Line: f.pkg.Fset.Position(n.Pos()).Line, Func: f.fn, Op: op, From: line(from), To: line(to),
		file: f.name, line: at.Line, col: at.Column, at: f.offset(n.Pos()), end: f.offset(n.End()), text: text, State: "unreached"}
	f.found = append(f.found, m)
	return m
}

// replace adds the place of an expression that becomes another.
func (f *finder) replace(n ast.Expr, op, to string) { f.add(n, n.Pos(), op, f.text(n), to, "("+to+")") }

// function adds the places of one function: first its returning zeros at once, unless that is all it does.
func (f *finder) function(d *ast.FuncDecl) {
	f.fn = d.Name.Name
	if d.Recv != nil {
		recv, _, _ := strings.Cut(strings.TrimLeft(f.text(d.Recv.List[0].Type), "*"), "[")
		f.fn = recv + "." + f.fn
	}
	var zeros []string
	if r := d.Type.Results; r != nil && len(r.List[0].Names) == 0 {
		for _, field := range r.List {
			zeros = append(zeros, "*new("+f.text(field.Type)+")")
		}
	}
	if len(d.Body.List) > 0 {
		first := d.Body.List[0]
		_, trivial := first.(*ast.ReturnStmt)
		if !trivial || len(zeros) > 0 && !slices.Contains([]string{"return nil", "return 0", "return false", `return ""`}, f.text(first)) {
			result := strings.TrimSpace("return " + strings.Join(zeros, ", "))
			m := f.add(d, first.Pos(), "return", string(f.src[f.offset(d.Pos()):f.offset(d.Body.Lbrace)]), result, " if true { "+result+" }; ")
			m.at = f.offset(d.Body.Lbrace) + 1
			m.end = m.at
		}
	}
	ast.Inspect(d.Body, f.visit)
}

var boundary = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
var arith = map[token.Token]string{token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*"}
var logic = map[token.Token]string{token.LAND: "||", token.LOR: "&&"}

// visit is called for each node of a body; it leaves out what is not worth changing.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.replace(n.Cond, "negate", "!("+f.text(n.Cond)+")")
	case *ast.ForStmt:
		if n.Cond != nil {
			f.replace(n.Cond, "negate", "!("+f.text(n.Cond)+")")
		}
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.BasicLit, *ast.Ident:
		f.constant(n.(ast.Expr))
	case *ast.CallExpr:
		switch name := f.text(n.Fun); {
		case name == "panic", strings.HasPrefix(name, "fmt."), name == "errors.New", strings.HasSuffix(name, "rrorf"):
			return false
		case name == "make" && len(n.Args) == 3:
			ast.Inspect(n.Args[1], f.visit)
			return false
		}
	case *ast.GenDecl, *ast.ArrayType:
		return false
	case *ast.SelectorExpr:
		ast.Inspect(n.X, f.visit)
		return false
	case *ast.KeyValueExpr:
		ast.Inspect(n.Value, f.visit)
		return false
	}
	return true
}

func (f *finder) binary(n *ast.BinaryExpr) {
	operand := func(x ast.Expr) string { // in brackets, so that another operator binds the same
		if _, ok := x.(*ast.BinaryExpr); ok && arith[n.Op] != "" {
			return "(" + f.text(x) + ")"
		}
		return f.text(x)
	}
	both := func(op string) string { return operand(n.X) + " " + op + " " + operand(n.Y) }
	switch {
	case boundary[n.Op] != "":
		f.replace(n, "boundary", both(boundary[n.Op]))
	case logic[n.Op] != "":
		f.replace(n, "logic", both(logic[n.Op]))
	case n.Op == token.EQL:
		f.replace(n, "negate", both("!="))
	case n.Op == token.NEQ:
		f.replace(n, "negate", both("=="))
	case arith[n.Op] != "":
		f.replace(n, "arith", both(arith[n.Op])) // of strings: it does not compile
	}
}

// constant changes a number: a literal, or the use of a named constant of no type of its own.
func (f *finder) constant(n ast.Expr) {
	tv := f.pkg.TypesInfo.Types[n]
	if id, named := n.(*ast.Ident); named {
		if c, ok := f.pkg.TypesInfo.Uses[id].(*types.Const); !ok || c.Pkg() == nil {
			return
		} else if _, plain := c.Type().(*types.Basic); !plain {
			return
		}
	}
	if tv.Type == nil || tv.Value == nil {
		return
	}
	basic, ok := tv.Type.Underlying().(*types.Basic)
	text, zero := f.text(n), tv.Value.ExactString() == "0"
	switch {
	case !ok || strings.HasPrefix(text, "'"):
	case basic.Info()&types.IsFloat != 0 && zero:
		f.replace(n, "const", "1")
	case basic.Info()&types.IsFloat != 0:
		f.replace(n, "const", text+" * 1.1")
	case basic.Info()&types.IsInteger != 0:
		f.replace(n, "const", text+" + 1")
		if !zero {
			f.replace(n, "const", text+" - 1")
		}
	}
}

// statements adds what may be left out of a list. What only tells the compiler a length, as x = x[:len(y)], stays.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		op := "remove"
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt, *ast.SendStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || f.text(s.Lhs[0]) == "_" || strings.HasPrefix(f.text(s.Rhs[0]), f.text(s.Lhs[0])+"[:len(") {
				continue
			}
			if c, ok := s.Rhs[0].(*ast.CallExpr); ok && f.text(c.Fun) == "append" {
				op = "append"
			}
		default:
			continue
		}
		f.add(s, s.Pos(), op, f.text(s), "", "if false { "+f.text(s)+" }")
	}
}
