package golang

import (
	"go/scanner"
	"go/token"
	"strings"
)

// IsComplete reports whether a cell can be run as it is: complete, incomplete (with the
// indent of the next line), or invalid.
func (s *Session) IsComplete(code string) (status, indent string) {
	if wholeCell(strings.TrimLeft(code, "\n")) {
		return "complete", ""
	}
	code = string(blankCommands(strings.Split(code, "\n")))
	depth, last, open, _ := brackets(code)
	switch {
	case depth < 0:
		return "invalid", ""
	case open, depth > 0:
		return "incomplete", strings.Repeat("\t", max(depth, 0))
	case continues[last]:
		return "incomplete", "\t"
	}
	status = "complete"
	s.do(func() {
		if err := s.e.Parse("", code); err != nil {
			status = "invalid"
			if strings.Contains(err.Error(), "found 'EOF'") {
				status = "incomplete"
			}
		}
	})
	return status, ""
}

// brackets returns the number of brackets that are open at the end of code, −1 where
// one is closed that was not opened or by another kind; its last token; whether a raw
// string or a comment is open; and where the last bracket stands that is open.
func brackets(code string) (depth int, last token.Token, open bool, at int) {
	var sc scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	sc.Init(file, []byte(code), func(_ token.Position, msg string) {
		if strings.Contains(msg, "not terminated") && (strings.Contains(msg, "raw string") || strings.Contains(msg, "comment")) {
			open = true
		}
	}, 0)
	var stack []token.Token
	var places []int
	closes := map[token.Token]token.Token{token.RPAREN: token.LPAREN, token.RBRACE: token.LBRACE, token.RBRACK: token.LBRACK}
	for {
		pos, tok, lit := sc.Scan()
		switch tok {
		case token.EOF:
			if len(places) > 0 {
				at = places[len(places)-1]
			}
			return len(stack), last, open, at
		case token.LPAREN, token.LBRACE, token.LBRACK:
			stack, places = append(stack, tok), append(places, file.Offset(pos))
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if len(stack) == 0 || stack[len(stack)-1] != closes[tok] {
				return -1, tok, open, 0
			}
			stack, places = stack[:len(stack)-1], places[:len(stack)-1]
		}
		if tok != token.SEMICOLON || lit != "\n" {
			last = tok
		}
	}
}

// continues are the tokens behind which a line goes on.
var continues = map[token.Token]bool{
	token.ADD: true, token.SUB: true, token.MUL: true, token.QUO: true, token.REM: true, token.AND: true, token.OR: true, token.XOR: true,
	token.SHL: true, token.SHR: true, token.LAND: true, token.LOR: true, token.ARROW: true, token.EQL: true, token.LSS: true, token.GTR: true,
	token.ASSIGN: true, token.NOT: true, token.NEQ: true, token.LEQ: true, token.GEQ: true, token.DEFINE: true, token.COMMA: true, token.PERIOD: true,
}
