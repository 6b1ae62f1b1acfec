package engine

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"regexp"
	"strings"
)

// kinds of what stands at the top of a cell.
const (
	statement = iota
	declaration
	importing
)

// item is a declaration at the top of a cell, or a statement, or a piece of one between semicolons.
type item struct {
	kind       int
	start, end int
	hoisted    int  // 1 for a function, method or type, which may stand behind what uses it; 2 for an import
	list       bool // several expressions, of which all are shown
}

// funcDecl matches the begin of a function or method, but not of a literal.
var funcDecl = regexp.MustCompile(`^func(?:\s+[\pL_]|\s*\([^()]*\)\s*([\pL_][\pL\pN_]*)\s*\()`)

// items takes a cell apart, imports first, and reports whether its last statement ends with a semicolon.
func (e *Engine) items(name, code string) (out []item, closed bool, err error) {
	var imports []item
	var errs scanner.ErrorList
	file := token.NewFileSet().AddFile(name, -1, len(code))
	var sc scanner.Scanner
	sc.Init(file, []byte(code), errs.Add, scanner.ScanComments)
	var open []int
	var first token.Token
	start, last := -1, 0
	for done := false; !done; {
		pos, t, lit := sc.Scan()
		at := file.Offset(pos)
		done = t == token.EOF
		switch t {
		case token.COMMENT:
			if m := directive.FindString(lit); m != "" {
				errs.Add(file.Position(pos), m+" has no effect in a cell; "+directives[m])
			}
			continue
		case token.LPAREN, token.LBRACE, token.LBRACK:
			open = append(open, at)
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if len(open) == 0 {
				errs.Add(file.Position(pos), "unexpected "+t.String())
				return nil, false, errs
			}
			open = open[:len(open)-1]
		}
		end := done || t == token.SEMICOLON && len(open) == 0
		switch n := len(out); {
		case end && start >= 0:
			it := newItem(code, start, last, first)
			start, closed = -1, lit == ";"
			if it.kind == importing {
				imports = append(imports, it)
			} else if first != token.PACKAGE {
				out = append(out, it)
			}
		case end && lit == ";" && n > 0 && out[n-1].kind == statement: // of a loop, say
			out[n-1].end = at
		case !end && start < 0:
			start, first = at, t
		}
		if lit == "" {
			lit = t.String()
		}
		last = min(at+len(lit), len(code))
	}
	if n := len(open); n > 0 {
		errs.Add(file.Position(file.Pos(open[n-1])), "this "+code[open[n-1]:open[n-1]+1]+" is not closed")
	}
	if len(errs) > 0 {
		return nil, false, errs
	}
	if n := len(out); n > 0 && !closed && out[n-1].kind == statement {
		x, err := parser.ParseExpr("f(" + code[out[n-1].start:out[n-1].end] + ")")
		call, ok := x.(*ast.CallExpr)
		out[n-1].list = err == nil && ok && len(call.Args) > 1
	}
	return append(imports, out...), closed, nil
}

// newItem returns the piece of code between two places, which begins with a token.
func newItem(code string, start, end int, first token.Token) item {
	it := item{start: start, end: end}
	switch first {
	case token.IMPORT:
		it.kind, it.hoisted = importing, 2
	case token.TYPE:
		it.kind, it.hoisted = declaration, 1
	case token.VAR, token.CONST:
		it.kind = declaration
	case token.FUNC:
		if m := funcDecl.FindStringSubmatch(code[start:end]); m != nil && !token.IsKeyword(m[1]) {
			it.kind, it.hoisted = declaration, 1
		}
	}
	return it
}

// directives are comments that tell the compiler something, which cells cannot, with what to do instead.
var directives = map[string]string{
	"//go:embed": "read the file: os.ReadFile", "//go:linkname": "use exported names",
	"//go:generate": "run the command: !cmd", "//export": "cells are no C library",
}

var directive = regexp.MustCompile(`^//(go:(embed|linkname|generate)|export)\b`)

// part is the source of one unit.
type part struct {
	kind  int
	items []item
}

// parts puts together the declarations that stand together, since each of them may use the others, and the statements.
func parts(items []item) (out []part) {
	for _, it := range items {
		if n := len(out); n > 0 && out[n-1].kind == it.kind {
			out[n-1].items = append(out[n-1].items, it)
		} else {
			out = append(out, part{it.kind, []item{it}})
		}
	}
	return out
}

// runName is the function of a unit of statements.
const runName = Hidden + "run"

// Hidden begins the names that are the engine's own.
const Hidden = "krrlab_"

// parse makes a file of a part of a cell; the lines are those of the cell.
func (e *Engine) parse(name, code string, p part) (*ast.File, error) {
	blank := []byte(code)
	for i, b := range blank {
		if b != '\n' {
			blank[i] = ' '
		}
	}
	for _, it := range p.items {
		copy(blank[it.start:], code[it.start:it.end])
		if it.end < len(blank) {
			blank[it.end] = code[it.end]
			if blank[it.end] != '\n' {
				blank[it.end] = ';'
			}
		}
	}
	body, head, tail := string(blank), "package main;", ""
	if it := p.items[len(p.items)-1]; it.list {
		body = body[:it.start] + showName + "(" + body[it.start:it.end] + ")" + body[it.end:]
	}
	if p.kind == statement {
		head, tail = head+"func "+runName+"(){", "\n}"
	}
	file, err := parser.ParseFile(e.fset, name, head+body+tail, parser.SkipObjectResolution)
	if list := (scanner.ErrorList)(nil); errors.As(err, &list) && list[0].Pos.Offset >= len(head)+len(body) {
		found, _, _ := strings.Cut(list[0].Msg, ", found")
		list[0].Msg, list[0].Pos.Line = found+", found 'EOF'", 1+strings.Count(code[:p.items[len(p.items)-1].end], "\n")
	}
	return file, err
}

// runs takes a file of statements apart where they declare a name again.
func runs(file *ast.File) (out []*ast.File) {
	fn := file.Decls[0].(*ast.FuncDecl)
	begin, declared := 0, map[string]bool{}
	cut := func(end int) {
		run, f, body := *file, *fn, *fn.Body
		body.List = fn.Body.List[begin:end:end]
		f.Body, run.Decls = &body, []ast.Decl{&f}
		out, begin, declared = append(out, &run), end, map[string]bool{}
	}
	for i, st := range fn.Body.List {
		a, ok := st.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE {
			continue
		}
		for _, x := range a.Lhs {
			if declared[types.ExprString(x)] {
				cut(i)
			}
		}
		for _, x := range a.Lhs {
			if id, ok := x.(*ast.Ident); ok && id.Name != "_" {
				declared[id.Name] = true
			}
		}
	}
	cut(len(fn.Body.List))
	return out
}
