package golang

import (
	"cmp"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/xreflect"

	"github.com/krrlab/lab/krrlab/notebook/bindings"
)

// Complete returns what may stand at the cursor, and the bytes of the code it replaces.
func (s *Session) Complete(code string, cursor int) (matches []string, start, end int) {
	cursor = min(max(cursor, 0), len(code))
	s.do(func() {
		defer func() {
			if recover() != nil {
				matches = nil
			}
			s.ir.Comp.Code.Clear()
		}()
		matches, start = s.complete(code, cursor)
	})
	if matches == nil {
		matches, start = []string{}, cursor
	}
	return matches, start, cursor
}

func (s *Session) complete(code string, cursor int) ([]string, int) {
	head := code[:cursor]
	line := head[strings.LastIndexByte(head, '\n')+1:]
	if t := strings.TrimLeft(line, " \t"); strings.HasPrefix(t, "%") {
		if found, n, ok := s.completeMagic(head, t); ok {
			return found, cursor - n
		}
	}
	if quoted, ok := openString(line); ok {
		return s.inString(head, quoted), cursor - len(quoted)
	}
	word := tailWord(head)
	before := strings.TrimRight(head[:len(head)-len(word)], " \t")
	if !strings.HasSuffix(before, ".") {
		return s.words(code, word), cursor - len(word)
	}
	chain := tailExpr(strings.TrimSuffix(before, "."))
	if imp := s.importOf(chain); imp != nil {
		return prefixed(importNames(imp), word), cursor - len(word)
	}
	t := s.typeOf(chain, head)
	if t == nil {
		return nil, cursor
	}
	return prefixed(memberNames(t), word), cursor - len(word)
}

// tailWord returns the identifier at the end of s.
func tailWord(s string) string {
	i := len(s)
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		i -= n
	}
	return s[i:]
}

// tailExpr returns the operand at the end of s: names, dots, calls and indices.
func tailExpr(s string) string {
	i := len(s)
	for i > 0 {
		switch c := s[i-1]; {
		case c == ')' || c == ']' || c == '}':
			j := opening(s[:i])
			if j < 0 {
				return s[i:]
			}
			i = j
		case c == '.' || c == '_' || c >= utf8.RuneSelf || unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c)):
			i--
		case c == '&' || c == '*':
			return s[i:]
		default:
			return s[i:]
		}
	}
	return s
}

// opening returns the index of the bracket that the last byte of s closes.
func opening(s string) int {
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')', ']', '}':
			depth++
		case '(', '[', '{':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// openString returns what stands in a string that is not closed at the end of a line.
func openString(line string) (string, bool) {
	quote, start := byte(0), 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote == 0 && (c == '"' || c == '`'):
			quote, start = c, i+1
		case quote == 0 && c == '\'' && i+2 < len(line):
			if j := strings.IndexByte(line[i+1:], '\''); j >= 0 {
				i += j + 1
			}
		case quote == '"' && c == '\\':
			i++
		case c == quote && quote != 0:
			quote = 0
		case quote == 0 && strings.HasPrefix(line[i:], "//"):
			return "", false
		}
	}
	if quote == 0 {
		return "", false
	}
	return line[start:], true
}

var importing = regexp.MustCompile(`(?s)(^|\n)\s*import\s*(\([^)]*|[\w.]*\s*)["` + "`" + `][^"` + "`" + `\n]*$`)

// inString completes import paths and names of files.
func (s *Session) inString(head, quoted string) []string {
	if importing.MatchString(head) {
		var out []string
		for _, p := range bindings.Paths() {
			if strings.HasPrefix(p, quoted) || quoted != "" && strings.HasPrefix(p[strings.LastIndexByte(p, '/')+1:], quoted) {
				out = append(out, p)
			}
		}
		return out
	}
	dir, base := filepath.Split(quoted)
	where := cmp.Or(dir, ".")
	entries, err := os.ReadDir(where)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || base == "" && strings.HasPrefix(name, ".") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		out = append(out, dir+name)
	}
	return out
}

// declaredWord finds names that the cell declares.
var declaredWord = regexp.MustCompile(`(?m)(?:^|[\s({;,])(?:var|const|func|type)?\s*([\pL_][\pL\pN_]*)\s*(?:,\s*[\pL_][\pL\pN_]*\s*)*(?::=|=| [\pL\[*])`)

// words completes a name that stands alone.
func (s *Session) words(code, word string) []string {
	if word == "" {
		return nil
	}
	set := map[string]bool{}
	for c := s.ir.Comp; c != nil; c = c.Outer {
		for name := range c.Binds {
			set[name] = true
		}
		for name := range c.Types {
			set[name] = true
		}
	}
	for tok := token.BREAK; tok <= token.VAR; tok++ {
		set[tok.String()] = true
	}
	for _, m := range declaredWord.FindAllStringSubmatch(code, -1) {
		set[m[1]] = true
	}
	delete(set, word)
	names := make([]string, 0, len(set))
	for name := range set {
		if !strings.HasPrefix(name, hidden) && token.IsIdentifier(name) || token.IsKeyword(name) {
			names = append(names, name)
		}
	}
	return prefixed(names, word)
}

// prefixed returns the names that begin with word, in order; those that do but for case
// where none does.
func prefixed(names []string, word string) []string {
	out := []string{}
	for _, fold := range []bool{false, true} {
		for _, n := range names {
			if strings.HasPrefix(n, word) || fold && strings.HasPrefix(strings.ToLower(n), strings.ToLower(word)) {
				out = append(out, n)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	slices.Sort(out)
	return out
}

// importOf returns the package that a name stands for.
func (s *Session) importOf(name string) *fast.Import {
	if !token.IsIdentifier(name) {
		return nil
	}
	if sym := s.ir.Comp.TryResolve(name); sym != nil {
		imp, _ := sym.Value.(*fast.Import)
		return imp
	}
	return nil
}

func importNames(imp *fast.Import) []string {
	var out []string
	for name := range imp.Binds {
		out = append(out, name)
	}
	for name := range imp.Types {
		out = append(out, name)
	}
	return out
}

// memberNames returns the fields and methods of a type, promoted ones too.
func memberNames(t xreflect.Type) []string {
	set := map[string]bool{}
	if rt := t.ReflectType(); rt != nil && rt.Name() != "" || rt != nil && rt.Kind() == reflect.Pointer && rt.Elem().Name() != "" {
		compiledMembers(rt, set)
	}
	interpretedMembers(t, set, 0)
	out := make([]string, 0, len(set))
	for name := range set {
		out = append(out, name)
	}
	return out
}

func compiledMembers(t reflect.Type, set map[string]bool) {
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		t = reflect.PointerTo(t)
	}
	for i := range t.NumMethod() {
		set[t.Method(i).Name] = true
	}
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t.Elem()) {
			if f.IsExported() {
				set[f.Name] = true
			}
		}
	}
}

func interpretedMembers(t xreflect.Type, set map[string]bool, depth int) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || depth > 4 {
		return
	}
	if t.Named() || t.Kind() == reflect.Interface {
		for i := range t.NumMethod() {
			if name := t.Method(i).Name; t.PkgPath() == "main" || token.IsExported(name) {
				set[name] = true
			}
		}
	}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			f := t.Field(i)
			if t.PkgPath() == "main" || token.IsExported(f.Name) {
				set[f.Name] = true
			}
			if f.Anonymous {
				interpretedMembers(f.Type, set, depth+1)
			}
		}
	}
}

// typeOf returns the type of an expression, compiled but not run; names that the cell
// declares before the cursor are looked up in its text.
func (s *Session) typeOf(expr, head string) xreflect.Type {
	if t := s.compiledType(expr); t != nil {
		return t
	}
	root := regexp.MustCompile(`^[\pL_][\pL\pN_]*`).FindString(expr)
	if root == "" || s.ir.Comp.TryResolve(root) != nil {
		return nil
	}
	t := s.declaredType(root, head)
	if t == nil || root == expr {
		return t
	}
	// The rest of the chain on a variable of that type, which is forgotten again.
	st := s.save()
	defer func() { s.ir.Comp.Binds = st.binds }()
	s.ir.Comp.NewBind(root, fast.VarBind, t)
	return s.compiledType(expr)
}

// declaredType finds name := expr, or var name T, in the text before the cursor.
func (s *Session) declaredType(name, head string) xreflect.Type {
	q := regexp.QuoteMeta(name)
	define := regexp.MustCompile(`(?m)^\s*((?:[\pL_][\pL\pN_]*\s*,\s*)*)` + q + `\s*(?:,[^:=\n]*)?:=\s*(.+)$`)
	if all := define.FindAllStringSubmatch(head, -1); len(all) > 0 {
		m := all[len(all)-1]
		types := s.compiledTypes(strings.TrimSuffix(strings.TrimSpace(m[2]), ";"))
		if i := strings.Count(m[1], ","); i < len(types) {
			return types[i]
		}
		return nil
	}
	if m := regexp.MustCompile(`(?m)\b` + q + `\s+(\*?[\pL_][\pL\pN_.]*)`).FindStringSubmatch(head); m != nil {
		if t := s.compiledType("(*" + m[1] + ")(nil)"); t != nil && t.Kind() == reflect.Pointer {
			return t.Elem()
		}
	}
	return nil
}

func (s *Session) compiledType(expr string) xreflect.Type {
	if ts := s.compiledTypes(expr); len(ts) > 0 {
		return ts[0]
	}
	return nil
}

// compiledTypes compiles an expression and returns the types of its values.
func (s *Session) compiledTypes(expr string) (types []xreflect.Type) {
	if strings.TrimSpace(expr) == "" {
		return nil
	}
	st := s.save()
	defer func() {
		if recover() != nil {
			types = nil
		}
		c := s.ir.Comp
		c.Code.Clear()
		c.Binds, c.Types, c.Loop, c.Func, c.Labels = st.binds, st.types, nil, nil, nil
	}()
	nodes := s.ir.Comp.ParseBytes([]byte("(" + expr + ")"))
	if len(nodes) != 1 {
		return nil
	}
	if k := s.check(nodes); k != nil {
		return nil
	}
	e := s.ir.CompileNode(nodes[0])
	if e == nil {
		return nil
	}
	for i := range e.NumOut() {
		if t := e.Out(i); t != nil {
			types = append(types, t)
		}
	}
	return types
}
