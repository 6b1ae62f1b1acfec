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

// itemKind is the kind of a top-level item of a cell.
type itemKind int

const (
	statement   itemKind = iota
	declaration          // of a constant, variable, type, function or method
	importDecl           // an import
)

// cellItem is a top-level import, declaration or statement of a cell, or the part of a statement between two
// semicolons. The header of a for statement is thus split into several items, which groupItems puts into the same
// section again.
type cellItem struct {
	kind       itemKind
	start, end int  // byte range in the cell
	hoistOrder int  // 2 for an import, 1 for a function, method or type, which may follow its first use, else 0
	isList     bool // the statement is a comma-separated list of expressions, all of which are displayed
}

// funcDecl matches the start of a function or method declaration, but not that of a function literal.
var funcDecl = regexp.MustCompile(`^func(?:\s+[\pL_]|\s*\([^()]*\)\s*([\pL_][\pL\pN_]*)\s*\()`)

// splitItems splits a cell into items, imports first, and drops package clauses. endsWithSemicolon reports whether the
// last statement ends with a semicolon, which suppresses the display of its value. The error is a scanner.ErrorList
// with the errors of the scanner, brackets without a partner, and directives that have no effect in a cell.
func (e *Engine) splitItems(name, code string) (items []cellItem, endsWithSemicolon bool, err error) {
	var imports []cellItem
	var errs scanner.ErrorList
	file := token.NewFileSet().AddFile(name, -1, len(code))
	var tokens scanner.Scanner
	tokens.Init(file, []byte(code), errs.Add, scanner.ScanComments)
	var openBrackets []int     // offsets of the brackets without a partner so far
	var firstToken token.Token // of the current item
	start, prevEnd := -1, 0    // start of the current item, or −1 between items, and end of the last token
	for atEOF := false; !atEOF; {
		pos, tok, text := tokens.Scan()
		offset := file.Offset(pos)
		atEOF = tok == token.EOF
		switch tok {
		case token.COMMENT:
			if matched := directive.FindString(text); matched != "" {
				errs.Add(file.Position(pos), matched+" has no effect in a cell; "+directives[matched])
			}
			continue
		case token.LPAREN, token.LBRACE, token.LBRACK:
			openBrackets = append(openBrackets, offset)
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if len(openBrackets) == 0 {
				errs.Add(file.Position(pos), "unexpected "+tok.String())
				return nil, false, errs
			}
			openBrackets = openBrackets[:len(openBrackets)-1]
		}
		itemEnds := atEOF || tok == token.SEMICOLON && len(openBrackets) == 0
		switch n := len(items); {
		case itemEnds && start >= 0:
			item := newItem(code, start, prevEnd, firstToken)
			start, endsWithSemicolon = -1, text == ";"
			if item.kind == importDecl {
				imports = append(imports, item)
			} else if firstToken != token.PACKAGE {
				items = append(items, item)
			}
		case itemEnds && text == ";" && n > 0 && items[n-1].kind == statement:
			// for example in the header of a for loop
			items[n-1].end = offset
		case !itemEnds && start < 0:
			start, firstToken = offset, tok
		}
		if text == "" {
			text = tok.String()
		}
		prevEnd = min(offset+len(text), len(code))
	}
	if n := len(openBrackets); n > 0 {
		offset := openBrackets[n-1]
		errs.Add(file.Position(file.Pos(offset)), "this "+code[offset:offset+1]+" is not closed")
	}
	if len(errs) > 0 {
		return nil, false, errs
	}
	if n := len(items); n > 0 && !endsWithSemicolon && items[n-1].kind == statement {
		items[n-1].isList = isExpressionList(code[items[n-1].start:items[n-1].end])
	}
	return append(imports, items...), endsWithSemicolon, nil
}

// isExpressionList reports whether code is a comma-separated list of at least two expressions.
func isExpressionList(code string) bool {
	expr, err := parser.ParseExpr("f(" + code + ")")
	call, ok := expr.(*ast.CallExpr)
	return err == nil && ok && len(call.Args) > 1
}

// newItem returns the item code[start:end], which begins with the given token.
func newItem(code string, start, end int, firstToken token.Token) cellItem {
	item := cellItem{start: start, end: end}
	switch firstToken {
	case token.IMPORT:
		item.kind, item.hoistOrder = importDecl, 2
	case token.TYPE:
		item.kind, item.hoistOrder = declaration, 1
	case token.VAR, token.CONST:
		item.kind = declaration
	case token.FUNC:
		if match := funcDecl.FindStringSubmatch(code[start:end]); match != nil && !token.IsKeyword(match[1]) {
			item.kind, item.hoistOrder = declaration, 1
		}
	}
	return item
}

// directives are compiler directives that have no effect in cells, each with advice on an alternative. A directive
// //go:generate is a comment in cells, as it is for go build.
var directives = map[string]string{
	"//go:embed": "read the file: os.ReadFile", "//go:linkname": "use exported names",
	"//export": "cells are no C library",
}

// directive matches a comment that begins with one of directives.
var directive = regexp.MustCompile(`^//(go:(embed|linkname)|export)\b`)

// section is a sequence of items of one kind. It is compiled as one unit, or as several if statements define a variable
// twice.
type section struct {
	kind  itemKind
	items []cellItem
}

// head returns the code that parse puts before the code of a section.
func (s section) head() string {
	if s.kind == statement {
		return "package main;func " + runFunc + "(){"
	}
	return "package main;"
}

// groupItems groups adjacent items of the same kind into sections. The declarations of one section may refer to each
// other.
func groupItems(items []cellItem) (sections []section) {
	for _, item := range items {
		if n := len(sections); n > 0 && sections[n-1].kind == item.kind {
			sections[n-1].items = append(sections[n-1].items, item)
		} else {
			sections = append(sections, section{item.kind, []cellItem{item}})
		}
	}
	return sections
}

// runFunc is the name of the function that contains the statements of a unit.
const runFunc = ReservedPrefix + "run"

// ReservedPrefix starts the names that are reserved for the engine.
const ReservedPrefix = "krrlab_"

// parse parses a section of a cell as a file, between the code that head returns and a closing brace if needed. The
// rest of the cell is replaced by spaces, except for line breaks, and each item is followed by a line break or a
// semicolon. The lines of the file are therefore those of the cell, but offsets, and columns in line 1, are larger by
// the length of the head. A list in the last item becomes the arguments of a call of showFunc, which shifts the rest of
// its line.
func (e *Engine) parse(name, code string, sec section) (*ast.File, error) {
	masked := []byte(code)
	for i, char := range masked {
		if char != '\n' {
			masked[i] = ' '
		}
	}
	for _, item := range sec.items {
		copy(masked[item.start:], code[item.start:item.end])
		if item.end < len(masked) && masked[item.end] != '\n' {
			masked[item.end] = ';'
		}
	}
	body, head, tail := string(masked), sec.head(), ""
	if lastItem := sec.items[len(sec.items)-1]; lastItem.isList {
		body = body[:lastItem.start] + showFunc + "(" + body[lastItem.start:lastItem.end] + ")" + body[lastItem.end:]
	}
	if sec.kind == statement {
		tail = "\n}"
	}
	file, err := parser.ParseFile(e.fset, name, head+body+tail, parser.SkipObjectResolution)
	// An error behind the end of the cell quotes code that the user did not write. It is reported at the end of the
	// section.
	if errList := (scanner.ErrorList)(nil); errors.As(err, &errList) && errList[0].Pos.Offset >= len(head)+len(body) {
		message, _, _ := strings.Cut(errList[0].Msg, ", found")
		end := sec.items[len(sec.items)-1].end
		errList[0].Msg, errList[0].Pos.Line = message+", found 'EOF'", 1+strings.Count(code[:end], "\n")
	}
	return file, err
}

// splitRedefinitions splits a file of statements into several before each statement that defines a variable again, so
// that no file defines a name twice.
func splitRedefinitions(file *ast.File) (files []*ast.File) {
	fn := file.Decls[0].(*ast.FuncDecl)
	start, declared := 0, map[string]bool{}
	cut := func(end int) {
		newFile, newFunc, body := *file, *fn, *fn.Body
		body.List = fn.Body.List[start:end:end]
		newFunc.Body, newFile.Decls = &body, []ast.Decl{&newFunc}
		files, start, declared = append(files, &newFile), end, map[string]bool{}
	}
	for i, stmt := range fn.Body.List {
		assign, ok := stmt.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			continue
		}
		for _, target := range assign.Lhs {
			if declared[types.ExprString(target)] {
				cut(i)
			}
		}
		for _, target := range assign.Lhs {
			if ident, ok := target.(*ast.Ident); ok && ident.Name != "_" {
				declared[ident.Name] = true
			}
		}
	}
	cut(len(fn.Body.List))
	return files
}
