package golang

import (
	"errors"
	"fmt"
	"go/scanner"
	"go/types"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/goplus/ixgo"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/native"
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

// rejected turns what is wrong with the code of a cell into an error.
func (s *Session) rejected(c *cell, err error) *Error {
	var list scanner.ErrorList
	var checked types.Error
	var missing *engine.MissingError
	switch {
	case errors.As(err, &list) && len(list) > 0:
		return c.failure(syntaxError, syntaxText(list[0].Msg), list[0].Pos.Line)
	case errors.As(err, &checked):
		return c.failure(compileError, hint(oneLine(checked.Msg)), checked.Fset.Position(checked.Pos).Line)
	case errors.As(err, &missing):
		return c.failure(compileError, s.missingText(missing.Paths), missing.Line)
	}
	return c.failure(compileError, oneLine(err.Error()), 0)
}

// explain turns what ended a cell into an error.
func (s *Session) explain(c *cell, err error) *Error {
	value, file, line := panicked(err)
	halted, ok := value.(engine.Halted)
	if halted.Line > 0 {
		file, line = halted.File, halted.Line
	}
	if line == 0 || ok && (file != c.name || line > len(c.lines)) {
		file, line = c.name, c.last
	}
	if ok && c.deep.Load() {
		return c.failure(panicError,
			"the recursion is too deep: functions that are not done take more than 192 MB of stack", line)
	}
	if ok {
		return c.failure(interrupted, "the cell was interrupted", line)
	}
	text := panicText(value)
	if file != c.name {
		return c.failure(panicError, fmt.Sprintf("%s (in a function of %s, line %d)", text, file, line), 0)
	}
	return c.failure(panicError, text, line)
}

// panicked returns what was panicked with at first, and the cell and the line of the innermost call that is of a cell.
func panicked(value any) (inner any, file string, line int) {
	var stack []byte
	for {
		switch v := value.(type) {
		case ixgo.PanicError:
			value, stack = v.Value, v.Stack()
		case ixgo.FatalError:
			value, stack = v.Value, v.Stack()
		case *accel.WorkerPanic:
			value, stack = v.Value, v.Stack
		case *native.Error:
			return v.Text, v.Cell, v.Line
		default:
			file, line = where(stack)
			return value, file, line
		}
	}
}

// ofNil finds what ixgo and package reflect say of nil, where Go has one message for it.
var ofNil = regexp.MustCompile(`^(slice: unexpected X type: \*|reflect: call of reflect\.Value\.Method on zero Value|` +
	`reflect\.Value\.Call: call of nil function)`)

// panicText is what was panicked with.
func panicText(value any) string {
	text := strings.TrimSpace(fmt.Sprint(value))
	if err, ok := value.(runtime.Error); ok {
		text = strings.TrimPrefix(err.Error(), "runtime error: ")
	}
	if ofNil.MatchString(text) {
		return "invalid memory address or nil pointer dereference"
	}
	return text
}

// frame is a line of a stack: the file, which is a cell, and the line.
var frame = regexp.MustCompile(`(?m)^\t(.*):(\d+) \+0x`)

// where returns the cell and the line of the innermost call that is of a cell.
func where(stack []byte) (file string, line int) {
	for _, m := range frame.FindAllSubmatch(stack, -1) {
		if file = string(m[1]); strings.HasSuffix(file, ".go") {
			continue
		}
		if line, _ = strconv.Atoi(string(m[2])); line > 0 {
			return file, line
		}
	}
	return "", 0
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// undefinedName finds a name that is not known, and whether it is of a package.
var undefinedName = regexp.MustCompile(`^undefined: (\w+)(\.\w+)?$`)

// twice finds two types that do not fit, which are written alike if one is of an earlier cell.
var twice = regexp.MustCompile(`(?: type | types )(\S+?)\)? (?:as|and) (\S+?)(?: value |\))`)

// hint returns what to do about a message of go/types.
func hint(text string) string {
	text = strings.ReplaceAll(text, "main.", "")
	m := undefinedName.FindStringSubmatch(text)
	if t, ok := strings.CutPrefix(text, "cannot define new methods on non-local type "); ok &&
		!strings.Contains(t, ".") && types.Universe.Lookup(t) == nil {
		return fmt.Sprintf("%s is of an earlier cell: declare its methods there, or embed it in a type of this one", t)
	}
	if t := twice.FindStringSubmatch(text); t != nil && t[1] == t[2] {
		return fmt.Sprintf("%s; one of them is the %s of before it was declared again: run the cells again that made "+
			"its values", text, strings.TrimLeft(t[1], "*[]"))
	}
	switch {
	case m == nil:
		return text
	case m[2] != "":
		return text + "; press Tab after the dot to list the names"
	}
	if line := importLine(m[1]); line != "" {
		return text + "; " + line
	}
	return text + "; declare it above, or run the cell that does, or import its package"
}

// syntaxText says what is wrong in terms of the cell.
func syntaxText(msg string) string {
	switch {
	case strings.HasPrefix(msg, "expected 1 expression"):
		return msg + "; several values are shown by the last line of a cell, without a semicolon"
	case strings.Contains(msg, "found 'EOF'"):
		return msg + "; the cell ends too early: a bracket or an operand is missing"
	}
	return msg
}
