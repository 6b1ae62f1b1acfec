package engine

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// kinds of what stands at the top of a cell.
const (
	statement = iota
	declaration
	importing
)

// item is a statement or declaration at the top of a cell.
type item struct {
	kind       int
	start, end int
	names      []string // that a statement declares
	hoisted    bool     // a function, method or type, which may stand behind what uses it
	list       bool     // several expressions, of which all are shown
}

// items takes a cell apart, and reports whether its last statement ends with a semicolon.
func (e *Engine) items(name, code string) (out []item, closed bool, err error) {
	var errs scanner.ErrorList
	file := token.NewFileSet().AddFile(name, -1, len(code))
	var sc scanner.Scanner
	sc.Init(file, []byte(code), errs.Add, scanner.ScanComments)
	type tok struct {
		pos, end int
		tok      token.Token
		lit      string
	}
	var all []tok
	for {
		pos, t, lit := sc.Scan()
		if t == token.EOF {
			break
		}
		if t == token.COMMENT {
			if m := directive.FindString(lit); m != "" {
				errs.Add(file.Position(pos), m+" has no effect in a cell; "+directives[m])
			}
			continue
		}
		length := len(lit)
		if lit == "" {
			length = len(t.String())
		}
		if t == token.SEMICOLON && lit == "\n" {
			length = 0
		}
		at := file.Offset(pos)
		all = append(all, tok{at, at + length, t, lit})
	}
	if len(errs) > 0 {
		return nil, false, errs
	}
	var open []tok
	depth, first := 0, -1
	header := false // of a for, if or switch, whose semicolons end no statement
	for i, t := range all {
		switch t.tok {
		case token.FOR, token.IF, token.SWITCH:
			header = header || depth == 0
		case token.SEMICOLON:
			header = header && t.lit == ";"
		}
		switch t.tok {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			header = header && (depth > 0 || t.tok != token.LBRACE)
			depth, open = depth+1, append(open, t)
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if depth--; depth < 0 {
				errs.Add(file.Position(file.Pos(t.pos)), "unexpected "+t.tok.String())
				return nil, false, errs
			}
			open = open[:depth]
		}
		if first < 0 && t.tok != token.SEMICOLON {
			first = i
		}
		end := depth == 0 && t.tok == token.SEMICOLON && !header
		if first < 0 || !end && i+1 < len(all) {
			continue
		}
		last := i
		if end {
			last--
		}
		it := item{start: all[first].pos, end: all[last].end}
		switch all[first].tok {
		case token.IMPORT:
			it.kind = importing
		case token.TYPE, token.VAR, token.CONST:
			it.kind, it.hoisted = declaration, all[first].tok == token.TYPE
		case token.FUNC:
			it.kind = statement
			if j := first + 1; j < len(all) && all[j].tok == token.LPAREN { // a method, or a literal
				for d := 0; j < len(all); j++ {
					if all[j].tok == token.LPAREN {
						d++
					} else if all[j].tok == token.RPAREN {
						if d--; d == 0 {
							break
						}
					}
				}
				if j+2 < len(all) && all[j+1].tok == token.IDENT && all[j+2].tok == token.LPAREN {
					it.kind = declaration
				}
			} else {
				it.kind = declaration
			}
			it.hoisted = it.kind == declaration
		}
		if all[first].tok != token.PACKAGE {
			for j := first; j <= last; j++ {
				if all[j].tok == token.DEFINE && it.kind == statement {
					it.names = definedBefore(code[it.start:all[j].pos])
					break
				}
				if all[j].tok != token.IDENT && all[j].tok != token.COMMA {
					break
				}
			}
			out, closed = append(out, it), end && all[i].lit == ";"
		}
		first = -1
	}
	if depth > 0 {
		errs.Add(file.Position(file.Pos(open[depth-1].pos)), "this "+open[depth-1].tok.String()+" is not closed")
		return nil, false, errs
	}
	if n := len(out); n > 0 && !closed && out[n-1].kind == statement {
		x, err := parser.ParseExpr("f(" + code[out[n-1].start:out[n-1].end] + ")")
		call, ok := x.(*ast.CallExpr)
		out[n-1].list = err == nil && ok && len(call.Args) > 1
	}
	return out, closed, nil
}

// directives are comments that tell the compiler something, which cells cannot, with what to do instead.
var directives = map[string]string{
	"//go:embed": "read the file: os.ReadFile", "//go:linkname": "use exported names",
	"//go:generate": "run the command: !cmd", "//export": "cells are no C library",
}

var directive = regexp.MustCompile(`^//(go:(embed|linkname|generate)|export)\b`)

// definedBefore returns the names that stand before :=.
func definedBefore(s string) []string {
	names := strings.Split(s, ",")
	for i, n := range names {
		names[i] = strings.TrimSpace(n)
	}
	return names
}

// part is the source of one unit.
type part struct {
	kind  int
	items []item
}

// parts puts together the declarations that stand together, since each of them may use the others, and
// the statements, up to one that declares a name again. Imports come first.
func parts(items []item) []part {
	imports := part{kind: importing}
	var out []part
	var declared map[string]bool
	for _, it := range items {
		if it.kind == importing {
			imports.items = append(imports.items, it)
			continue
		}
		again := false
		for _, n := range it.names {
			again = again || declared[n] && n != "_"
		}
		if len(out) == 0 || out[len(out)-1].kind != it.kind || again {
			out, declared = append(out, part{kind: it.kind}), map[string]bool{}
		}
		p := &out[len(out)-1]
		p.items = append(p.items, it)
		for _, n := range it.names {
			declared[n] = true
		}
	}
	if imports.items != nil {
		out = append([]part{imports}, out...)
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
