package mutants

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// Site is one place of a package and one change of it.
type Site struct {
	Package string // its path in the module
	File    string // base name
	Line    int
	Func    string // "F" or "T.M"
	Op      string // "boundary", "negate", "logic", "arith", "const", "remove", "append" or "return"
	From    string // the text that is changed, on one line
	To      string // what it becomes; empty for what is removed

	nth   int // of the sites of this package with this Key
	edits []edit
	span  [2]int // what a replacement covers in the file; empty for insertions
	hash  string
}

// edit replaces src[at:end] by text; %d in text is the number of the mutant.
type edit struct {
	at, end int
	text    string
	closing bool // an insertion that belongs before others of the same place
}

// Key names the site by its text, so that it stays the same when lines move.
func (s *Site) Key() string {
	k := fmt.Sprintf("%s %s %s: %s", s.Package, s.Func, s.Op, s.From)
	if s.To != "" {
		k += " => " + s.To
	}
	return k
}

// draw sets the hash by which sites are drawn.
func (s *Site) draw(seed int) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", seed, s.nth, s.Key()))
	s.hash = hex.EncodeToString(sum[:])
}

// overlaps reports whether one of two sites changes what the other replaces.
func (s *Site) overlaps(o *Site) bool {
	if s.File != o.File {
		return false
	}
	inside := func(a, b *Site) bool {
		for _, e := range a.edits {
			if e.end == e.at && b.span[0] < e.at && e.at < b.span[1] {
				return true
			}
		}
		return false
	}
	return s.span[0] < o.span[1] && o.span[0] < s.span[1] || inside(s, o) || inside(o, s)
}

// finder collects the sites of one file.
type finder struct {
	*source
	file  *ast.File
	name  string
	src   []byte
	fn    string
	found []*Site
}

// oneLine is the text of a site, cut where it gets long.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 90 {
		s = string(r[:90]) + "…"
	}
	return s
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }
func (f *finder) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }

func (f *finder) add(n ast.Node, op, from, to string, edits ...edit) *Site {
	s := &Site{Package: f.path, File: f.name, Line: f.fset.Position(n.Pos()).Line, Func: f.fn, Op: op, From: oneLine(from), To: oneLine(to), edits: edits}
	f.found = append(f.found, s)
	return s
}

// replace adds a site whose expression n becomes the text to while the mutant is on.
func (f *finder) replace(n ast.Expr, op, to string) {
	typ, ok := f.typeName(f.file, n)
	if !ok {
		return
	}
	at, end := f.offset(n.Pos()), f.offset(n.End())
	text := "(func() " + typ + " { if mutantOn(%d) { return " + to + " }; return " + f.text(n) + " }())"
	s := f.add(n, op, f.text(n), to, edit{at: at, end: end, text: text})
	s.span = [2]int{at, end}
}

// wrap adds a site whose statement n is left out while the mutant is on.
func (f *finder) wrap(n ast.Stmt, op string) {
	at, end := f.offset(n.Pos()), f.offset(n.End())
	f.add(n, op, f.text(n), "", edit{at: at, end: at, text: "if !mutantOn(%d) { "}, edit{at: end, end: end, text: " }", closing: true})
}

// negate adds a site whose condition n is turned round while the mutant is on.
func (f *finder) negate(n ast.Expr) {
	at, end := f.offset(n.Pos()), f.offset(n.End())
	f.add(n, "negate", f.text(n), "!("+f.text(n)+")", edit{at: at, end: at, text: "(("}, edit{at: end, end: end, text: ") != mutantOn(%d))", closing: true})
}

// function adds the sites of one function.
func (f *finder) function(d *ast.FuncDecl) {
	f.fn = d.Name.Name
	if d.Recv != nil {
		recv := strings.TrimLeft(f.text(d.Recv.List[0].Type), "*")
		recv, _, _ = strings.Cut(recv, "[")
		f.fn = recv + "." + f.fn
	}
	if d.Body != nil && !slices.Contains([]string{"String", "Error", "GoString", "init", "main"}, d.Name.Name) {
		f.early(d)
		ast.Inspect(d.Body, f.visit)
	}
}

// early adds the site that returns zeros at once, unless that is all the function does.
func (f *finder) early(d *ast.FuncDecl) {
	var zeros []string
	named := false
	if r := d.Type.Results; r != nil {
		for _, field := range r.List {
			named = named || len(field.Names) > 0
			zeros = append(zeros, "*new("+f.text(field.Type)+")")
		}
	}
	result := "return"
	if !named {
		result = strings.TrimSpace("return " + strings.Join(zeros, ", "))
	}
	if len(d.Body.List) == 0 {
		return
	}
	r, ok := d.Body.List[0].(*ast.ReturnStmt)
	if ok && len(d.Body.List) == 1 && len(r.Results) == len(zeros) && !slices.ContainsFunc(r.Results, func(x ast.Expr) bool {
		return !slices.Contains([]string{"nil", "0", "false", `""`}, f.text(x))
	}) {
		return
	}
	at := f.offset(d.Body.Lbrace) + 1
	f.add(d, "return", string(f.src[f.offset(d.Pos()):at-1]), result, edit{at: at, end: at, text: " if mutantOn(%d) { " + result + " }; "})
}

var boundary = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
var arith = map[token.Token]string{token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*"}
var logic = map[token.Token]string{token.LAND: "||", token.LOR: "&&"}

// visit is called for each node of a body; it leaves out what is not worth changing.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.negate(n.Cond)
		}
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.BasicLit:
		f.constant(n)
	case *ast.Ident:
		f.constant(n)
	case *ast.CallExpr:
		return f.call(n)
	case *ast.GenDecl, *ast.CompositeLit:
		// Declarations within a function hold constants; a table's entries are data.
		_, table := n.(*ast.CompositeLit)
		return table
	case *ast.ArrayType:
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

// call leaves out the texts of errors and the capacity of make.
func (f *finder) call(n *ast.CallExpr) bool {
	switch name := f.text(n.Fun); {
	case name == "panic", strings.HasPrefix(name, "fmt."), name == "errors.New", strings.HasSuffix(name, "rrorf"):
		return false
	case name == "make" && len(n.Args) == 3:
		ast.Inspect(n.Args[1], f.visit)
		return false
	}
	return true
}

func (f *finder) binary(n *ast.BinaryExpr) {
	both := func(op string) string { return f.text(n.X) + " " + op + " " + f.text(n.Y) }
	switch {
	case boundary[n.Op] != "":
		f.replace(n, "boundary", both(boundary[n.Op]))
	case logic[n.Op] != "":
		f.replace(n, "logic", both(logic[n.Op]))
	case n.Op == token.EQL:
		f.replace(n, "negate", both("!="))
	case n.Op == token.NEQ:
		f.replace(n, "negate", both("=="))
	case arith[n.Op] != "" && f.isNumber(n):
		f.replace(n, "arith", f.operand(n.X)+" "+arith[n.Op]+" "+f.operand(n.Y))
	}
}

// operand puts brackets around a sum or product, so that another operator binds the same.
func (f *finder) operand(x ast.Expr) string {
	if _, ok := x.(*ast.BinaryExpr); ok {
		return "(" + f.text(x) + ")"
	}
	return f.text(x)
}

// statements adds what may be left out of a list.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt, *ast.SendStmt:
			f.wrap(s, "remove")
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || f.text(s.Lhs[0]) == "_" || f.isHint(s) {
				continue
			}
			op := "remove"
			if c, ok := s.Rhs[0].(*ast.CallExpr); ok && f.text(c.Fun) == "append" {
				op = "append"
			}
			f.wrap(s, op)
		}
	}
}

// isHint reports whether s only tells the compiler a length, as x = x[:len(y)] does before a
// loop.
func (f *finder) isHint(s *ast.AssignStmt) bool {
	for i, x := range s.Rhs {
		if !strings.HasPrefix(f.text(x), f.text(s.Lhs[i])+"[:len(") {
			return false
		}
	}
	return true
}
