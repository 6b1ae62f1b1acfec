package golang

import (
	"fmt"
	"go/token"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/cosmos72/gomacro/base"
	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/go/scanner"
)

// Error is how a cell failed: the kind, one line, and that with the lines of the cell.
type Error struct {
	Name, Value string
	Traceback   []string
}

// Error is the kind and the line.
func (e *Error) Error() string { return e.Name + ": " + e.Value }

// Names of errors.
const (
	syntaxError  = "SyntaxError"
	compileError = "CompileError"
	panicError   = "Panic"
	interrupted  = "Interrupted"
)

const (
	red   = "\x1b[31m"
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

// failure makes an error that shows the line of the cell, 0 if it is not known.
func (c *cell) failure(name, text string, line int) *Error {
	e := &Error{Name: name, Value: text}
	head := fmt.Sprintf("%s%s%s: %s%s", bold, red, name, plain, text)
	if line < 1 || line > len(c.lines) {
		e.Traceback = []string{head}
		return e
	}
	e.Traceback = []string{head, fmt.Sprintf("%s, line %d", c.name, line)}
	for i := max(1, line-2); i <= min(len(c.lines), line+2); i++ {
		if i == line {
			e.Traceback = append(e.Traceback, fmt.Sprintf("%s→ %3d│ %s%s", red, i, c.lines[i-1], plain))
		} else {
			e.Traceback = append(e.Traceback, fmt.Sprintf("  %3d│ %s", i, c.lines[i-1]))
		}
	}
	if !strings.Contains(text, "line ") {
		e.Value = fmt.Sprintf("%s (%s, line %d)", text, c.name, line)
	}
	return e
}

// position is how gomacro writes one: Cell 5:3:7: message.
var position = regexp.MustCompile(`(?s)^(.*?):(\d+):(\d+): (.*)$`)

// explain turns what was recovered into an error.
func (s *Session) explain(c *cell, r any, compiled bool) *Error {
	if r == base.SigInterrupt {
		_, line := s.where(c)
		if c.deep.Load() {
			return c.failure(panicError, "the recursion is too deep: functions that are not done take more than 192 MB of stack", line)
		}
		return c.failure(interrupted, "the cell was interrupted", line)
	}
	if list, ok := r.(scanner.ErrorList); ok && len(list) > 0 {
		return c.failure(syntaxError, syntaxText(list[0].Msg), list[0].Pos.Line)
	}
	text := strings.TrimSpace(fmt.Sprint(r))
	if !compiled {
		line := 0
		if m := position.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[2])
			text = m[4]
		} else if p := s.ir.Comp.Position(); p.IsValid() {
			line = p.Line
		}
		return c.failure(compileError, hint(oneLine(text)), line)
	}
	if err, ok := r.(runtime.Error); ok {
		text = strings.TrimPrefix(err.Error(), "runtime error: ")
	}
	other, line := s.where(c)
	if other != "" {
		return c.failure(panicError, fmt.Sprintf("%s (in a function of %s, line %d)", panicText(text), other, line), 0)
	}
	return c.failure(panicError, panicText(text), line)
}

// panicText puts the interpreter's ways of saying things into Go's.
func panicText(text string) string {
	switch {
	case strings.Contains(text, "reflect: slice index out of range"), strings.Contains(text, "reflect: array index out of range"):
		return "index out of range"
	case strings.Contains(text, "reflect.Value.") && strings.Contains(text, "on zero Value"):
		return "nil pointer, or a variable that has no value yet (" + text + ")"
	}
	return text
}

// where returns the line at which the interpreter was stopped, and the cell if it is
// another one than c: that of the innermost function that was called.
func (s *Session) where(c *cell) (other string, line int) {
	top := s.ir.PrepareEnv()
	for e := top.Run.CurrEnv; e != nil && e != top; e = e.Caller {
		if p := s.at(e); p.IsValid() {
			if p.Filename != c.name {
				return p.Filename, p.Line
			}
			return "", p.Line
		}
	}
	if p := s.at(top); p.IsValid() && p.Filename == c.name {
		return "", p.Line
	}
	return "", c.last // behind the statements comes the last expression
}

// at returns the position of the statement that an environment has come to.
func (s *Session) at(e *fast.Env) (p token.Position) {
	if e.IP < 0 || e.IP >= len(e.DebugPos) {
		return p
	}
	return s.ir.Comp.Fileset.Position(e.DebugPos[e.IP])
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\n", " ")), " ")
}

var untyped = regexp.MustCompile(`\{(\w+) ("(?:[^"\\]|\\.)*"|[^}]*)\}`)

// How the interpreter speaks of what it does not find, of nodes and of types.
var (
	noSymbol   = regexp.MustCompile(`^package (\w+) "[^"]*" has no symbol (\w+)`)
	notPackage = regexp.MustCompile(`^not a package: "(\w+)" in (\S+)`)
	nodeKind   = regexp.MustCompile(` <\*ast\.\w+>`)
	// what an untyped constant of a string or bool becomes where the type is a compiled one
	constantType = regexp.MustCompile(`value of type reflect\.Value cannot be converted to type (\S+)`)
	typeName     = regexp.MustCompile(`<([\w.*\[\]{}]+)>`)
)

// hint says of a message of the interpreter what to do about it.
func hint(text string) string {
	text = strings.ReplaceAll(untyped.ReplaceAllString(text, "$2 ($1)"), "<untyped.Lit>", "untyped constant")
	if m := noSymbol.FindStringSubmatch(text); m != nil {
		return "undefined: " + m[1] + "." + m[2] + "; press Tab after the dot to list the names"
	}
	if m := notPackage.FindStringSubmatch(text); m != nil {
		return m[2] + " undefined: " + m[1] + " has no such field or method"
	}
	if m := undefinedName.FindStringSubmatch(text); m != nil {
		if line := importLine(m[1]); line != "" {
			return "undefined: " + m[1] + "; " + line
		}
	}
	if m := constantType.FindStringSubmatch(text); m != nil {
		return "the interpreter makes no " + m[1] + " of a string constant: take the package's constants of that type, or convert a variable"
	}
	raw := text
	text = typeName.ReplaceAllString(nodeKind.ReplaceAllString(text, ""), "$1")
	switch {
	case strings.Contains(text, "cannot range over"):
		return text + "; write for i := 0; i < n; i++: the interpreter ranges over a number only where it is a literal, a len or known as int, and not over functions"
	case regexp.MustCompile(`undefined identifier: (min|max)$`).MatchString(text):
		return text + "; the interpreter has no min and max: use math.Min and math.Max, or if"
	case strings.HasSuffix(text, "undefined identifier: clear"):
		return text + "; the interpreter has no clear: make a new map, or loop"
	case strings.Contains(text, "undefined identifier: "):
		return text + "; declare it in this cell or run the cell that does, or import its package"
	case strings.Contains(text, "not a type: ") && strings.Contains(raw, "SelectorExpr"):
		name, _, _ := strings.Cut(strings.SplitN(text, "not a type: ", 2)[1], " ")
		return "undefined: " + name + "; press Tab after the dot to list the names"
	}
	return text
}

// syntaxText says what is wrong in terms of the cell.
func syntaxText(msg string) string {
	switch {
	case strings.HasPrefix(msg, "expected 1 expression"):
		return msg + "; show several values on separate lines, or with Display(a); Display(b)"
	case strings.Contains(msg, "found 'EOF'"):
		return msg + "; the cell ends too early: a bracket or an operand is missing"
	}
	return msg
}
