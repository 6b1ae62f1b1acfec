package golang

import (
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
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

// Error is the failure of a cell. The fields are those of an error message in the protocol of Jupyter: ename, evalue
// and traceback.
type Error struct {
	Name, Value string   // kind, such as CompileError, and one-line message
	Traceback   []string // lines for display, with colors: kind and message, and the failing line with its surroundings
}

// Error returns the kind and the message.
func (e *Error) Error() string { return e.Name + ": " + e.Value }

// Kinds of errors.
const (
	syntaxError      = "SyntaxError"
	compileError     = "CompileError"
	panicError       = "Panic"
	interruptedError = "Interrupted"
)

// ANSI escape sequences, which Jupyter shows as colors and weights.
const (
	red   = "\x1b[31m"
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

// failure returns an error of the given kind that shows a line of the cell, counted from 1, and its surroundings. If
// line is 0, the line is unknown. Otherwise the name of the cell and the line are appended to the message, unless the
// message contains the word "line" already.
func (c *cell) failure(kind, text string, line int) *Error {
	cellErr := &Error{Name: kind, Value: text}
	title := fmt.Sprintf("%s%s%s: %s%s", bold, red, kind, plain, text)
	if line < 1 || line > len(c.lines) {
		cellErr.Traceback = []string{title}
		return cellErr
	}
	cellErr.Traceback = []string{title, fmt.Sprintf("%s, line %d", c.name, line)}
	for i := max(1, line-2); i <= min(len(c.lines), line+2); i++ {
		if i == line {
			cellErr.Traceback = append(cellErr.Traceback, fmt.Sprintf("%s→ %3d│ %s%s", red, i, c.lines[i-1], plain))
		} else {
			cellErr.Traceback = append(cellErr.Traceback, fmt.Sprintf("  %3d│ %s", i, c.lines[i-1]))
		}
	}
	if !strings.Contains(text, "line ") {
		cellErr.Value = fmt.Sprintf("%s (%s, line %d)", text, c.name, line)
	}
	return cellErr
}

// compileFailure converts an error of the compilation of a cell.
func (s *Session) compileFailure(c *cell, err error) *Error {
	var syntaxErrs scanner.ErrorList
	var typeErr types.Error
	var missing *engine.MissingPackagesError
	switch {
	case errors.As(err, &syntaxErrs) && len(syntaxErrs) > 0:
		return c.failure(syntaxError, syntaxText(syntaxErrs[0].Msg), syntaxErrs[0].Pos.Line)
	case errors.As(err, &typeErr):
		return c.failure(compileError, s.withHint(oneLine(typeErr.Msg)), typeErr.Fset.Position(typeErr.Pos).Line)
	case errors.As(err, &missing):
		return c.failure(compileError, s.missingPackagesText(missing.Paths), missing.Line)
	}
	return c.failure(compileError, oneLine(err.Error()), 0)
}

// runFailure converts the error or panic that ended the execution of a cell.
func (s *Session) runFailure(c *cell, err error) *Error {
	value, file, line := unwrapPanic(err)
	stopped, isStopped := value.(engine.Stopped)
	if stopped.Line > 0 {
		file, line = stopped.File, stopped.Line
	}
	// If the position is unknown, or if an interrupt has stopped a function of another cell, show the line of this cell
	// that was running.
	if line == 0 || isStopped && (file != c.name || line > len(c.lines)) {
		file, line = c.name, c.currentLine
	}
	if isStopped && c.recursionTooDeep.Load() {
		return c.failure(panicError,
			"the recursion is too deep: the calls that have not returned take more than 192 MB of stack", line)
	}
	if isStopped {
		return c.failure(interruptedError, "the cell was interrupted", line)
	}
	text := panicText(value)
	if file != c.name {
		return c.failure(panicError, fmt.Sprintf("%s (in a function of %s, line %d)", text, file, line), 0)
	}
	return c.failure(panicError, text, line)
}

// unwrapPanic returns the original value of a panic, which the interpreter or a goroutine of package accel may have
// wrapped, and the cell and line of the innermost call within a cell. They are "" and 0 if no such call is known.
func unwrapPanic(value any) (inner any, file string, line int) {
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
			file, line = cellLocation(stack)
			return value, file, line
		}
	}
}

// nilMessage matches the messages of ixgo and package reflect for nil dereferences. Go has one message for all of them.
var nilMessage = regexp.MustCompile(`^(slice: unexpected X type: \*|` +
	`reflect: call of reflect\.Value\.Method on zero Value|reflect\.Value\.Call: call of nil function)`)

// panicText returns the message for the value of a panic.
func panicText(value any) string {
	text := strings.TrimSpace(fmt.Sprint(value))
	if err, ok := value.(runtime.Error); ok {
		text = strings.TrimPrefix(err.Error(), "runtime error: ")
	}
	if nilMessage.MatchString(text) {
		return "invalid memory address or nil pointer dereference"
	}
	return text
}

// stackLine matches a line of a stack trace: the file, which is the name of a cell for interpreted code, and the line.
var stackLine = regexp.MustCompile(`(?m)^\t(.*):(\d+) \+0x`)

// cellLocation returns the cell and line of the innermost call within a cell.
func cellLocation(stack []byte) (file string, line int) {
	for _, m := range stackLine.FindAllSubmatch(stack, -1) {
		if file = string(m[1]); strings.HasSuffix(file, ".go") {
			continue
		}
		if line, _ = strconv.Atoi(string(m[2])); line > 0 {
			return file, line
		}
	}
	return "", 0
}

// oneLine replaces each run of white space by one space.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// undefinedName matches an error about an unknown name. Its second group is not empty if the name is a member of a
// package.
var undefinedName = regexp.MustCompile(`^undefined: (\w+)(?:\.(\w+))?$`)

// typePair matches an error about two incompatible types. If a cell declares a type again, the old and the new type
// have the same name in the message.
var typePair = regexp.MustCompile(`(?: type | types )(\S+?)\)? (?:as|and) (\S+?)(?: value |\))`)

// Errors that occur if a variable of a cell has the name of a predeclared function or type, or of a package.
var (
	notPredeclared = regexp.MustCompile(`cannot call (\w+) \(|^(\w+) (?:\([\w -]+\) )?is not a type`)
	noMember       = regexp.MustCompile(`^(\w+)\.(\w+) undefined \(type `)
)

// withHint returns a message of go/types with advice on how to correct the error, if there is any. It removes the
// qualifier of types that cells declare, and the engine's own function.
func (s *Session) withHint(text string) string {
	text = strings.ReplaceAll(text, "main.", "") // cells are compiled as package main
	text = strings.Replace(text, " in argument to "+engine.ReservedPrefix+"show", "", 1)
	if typeName, ok := strings.CutPrefix(text, "cannot define new methods on non-local type "); ok &&
		!strings.Contains(typeName, ".") && types.Universe.Lookup(typeName) == nil {
		return fmt.Sprintf("%s is of an earlier cell: declare its methods there, or embed it in a type of this one", typeName)
	}
	if pair := typePair.FindStringSubmatch(text); pair != nil && pair[1] == pair[2] {
		return fmt.Sprintf("%s; %s was declared again, and one value has the earlier type: run the cell that makes "+
			"this value again", text, strings.TrimLeft(pair[1], "*[]"))
	}
	if match := notPredeclared.FindStringSubmatch(text); match != nil &&
		types.Universe.Lookup(match[1]+match[2]) != nil {
		return fmt.Sprintf("%s; a cell has declared the name %s, which hides that of Go: use another name there, and "+
			"%%reset", text, match[1]+match[2])
	}
	if match := noMember.FindStringSubmatch(text); match != nil {
		if path := s.packageWith(match[1], match[2]); path != "" {
			return fmt.Sprintf("%s; a variable hides the package %s: import %q again, or rename the variable", text,
				match[1], path)
		}
	}
	match := undefinedName.FindStringSubmatch(text)
	switch {
	case match == nil:
		return text
	case match[2] != "":
		if path := s.packageWith(match[1], match[2]); path != "" {
			return fmt.Sprintf("%s; import %q, which has it", text, path)
		}
		return text + "; press Tab after the dot to list the names"
	}
	if advice := importAdvice(match[1]); advice != "" {
		return text + "; " + advice
	}
	return text + "; declare it above, or run the cell that does, or import its package"
}

// packageWith returns the path of a compiled-in package that has the given name and exports the given member, or "" if
// there is none.
func (s *Session) packageWith(name, member string) string {
	for _, path := range packagesNamed(name) {
		if pkg := s.interp.Package(path); token.IsExported(member) && pkg != nil && pkg.Scope().Lookup(member) != nil {
			return path
		}
	}
	return ""
}

// syntaxText returns the message of a syntax error, with an explanation in terms of the cell.
func syntaxText(msg string) string {
	switch {
	case strings.HasPrefix(msg, "expected 1 expression"):
		return msg + "; several values are shown by the last line of a cell, without a semicolon"
	case strings.Contains(msg, "found 'EOF'"):
		return msg + "; the cell ends too early: a bracket or an operand is missing"
	}
	return msg
}
