package golang

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/cosmos72/gomacro/ast2"
	"github.com/cosmos72/gomacro/base"
	basereflect "github.com/cosmos72/gomacro/base/reflect"
	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/go/scanner"
	"github.com/cosmos72/gomacro/xreflect"
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

// names are what cells declared.
type names = map[string]*fast.Bind

// step is a compiled statement of a cell, or declarations that stand together.
type step struct {
	expr   *fast.Expr
	before names // what was declared before it
	line   int
}

// compile compiles a cell in the order in which it is executed.
func (s *Session) compile(nodes []ast.Node) []step {
	c := s.ir.Comp
	var steps []step
	for _, group := range groups(nodes) {
		st := step{before: maps.Clone(c.Binds), line: c.Fileset.Position(group[0].Pos()).Line}
		form := ast2.AnyToAst(group, "cell")
		st.expr = s.ir.CompileAst(form)
		if changed := retyped(st.before, c.Binds); len(changed) > 0 {
			st.expr = s.compileAnew(form, st.before, changed)
		}
		steps = append(steps, st)
	}
	return steps
}

// groups puts the imports of a cell first, and together the declarations that stand together, since
// each of them may use the others.
func groups(nodes []ast.Node) [][]ast.Node {
	var imports []ast.Node
	var out [][]ast.Node
	joined := false
	for _, n := range nodes {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			imports = append(imports, n)
			continue
		}
		_, decl := n.(ast.Decl)
		if decl && joined {
			out[len(out)-1] = append(out[len(out)-1], n)
		} else {
			out = append(out, []ast.Node{n})
		}
		joined = decl
	}
	if imports != nil {
		out = append([][]ast.Node{imports}, out...)
	}
	return out
}

// retyped returns the names that were declared with another type in the slot they had. What was
// compiled before takes the bits there for the type of old.
func retyped(before, now names) []string {
	var out []string
	for name, b := range now {
		old := before[name]
		if old == nil || old == b || b.Desc.Index() == fast.NoIndex || b.Desc.Index() != old.Desc.Index() {
			continue
		}
		was, is := old.Desc.Class(), b.Desc.Class()
		if (was == fast.IntBind) == (is == fast.IntBind) && (was != is || old.Type.ReflectType() != b.Type.ReflectType()) {
			out = append(out, name)
		}
	}
	return out
}

// compileAnew compiles declarations again so that the names that change their type get slots of
// their own, as in an inner scope: what was compiled before keeps the old ones. The
// scope shares the variables of the session; until a name is declared in it, it has the old meaning.
func (s *Session) compileAnew(form ast2.Ast, before names, changed []string) *fast.Expr {
	c := s.ir.Comp
	c.Binds = before
	inner := fast.NewComp(c, nil)
	inner.UpCost, inner.Depth, inner.CompBinds = 0, c.Depth, c.CompBinds
	inner.Binds = maps.Clone(before)
	for _, name := range changed {
		delete(inner.Binds, name)
	}
	expr := inner.Compile(form)
	c.CompBinds = inner.CompBinds
	return expr
}

// exec executes the steps of a cell and returns the values of the last, or false if the cell was left
// behind meanwhile. It does what gomacro's own RunExpr does, but leaves the innermost
// environment in CurrEnv when a panic comes, from which the line is known.
func (s *Session) exec(c *cell, steps []step) (vals []xreflect.Value, types []xreflect.Type, ok bool) {
	env := s.ir.PrepareEnv()
	for i := range steps {
		e := steps[i].expr
		c.last = steps[i].line
		vals, types = nil, nil
		if e == nil {
			continue
		}
		if e.Untyped() {
			e.ConstTo(e.DefaultType())
		}
		c.names.Store(&steps[i].before)
		env.Run.CurrEnv = env
		v, vs := e.AsXV(fast.COptKeepUntyped)(env)
		env.Run.CurrEnv = nil
		c.names.Store(nil)
		if c.state.Load() != isRunning {
			return nil, nil, false
		}
		if i+1 < len(steps) && c.hits.Load() > 0 { // what comes next does not run
			c.names.Store(&steps[i+1].before)
			panic(base.SigInterrupt)
		}
		vals, types = basereflect.PackValues(v, vs), basereflect.PackTypes(e.Type, e.Types)
	}
	return vals, types, true
}
