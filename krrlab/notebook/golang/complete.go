package golang

import (
	"cmp"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// Complete returns what may stand at the cursor, and the bytes of the code it replaces.
func (s *Session) Complete(code string, cursor int) (matches []string, start, end int) {
	cursor = min(max(cursor, 0), len(code))
	s.do(func() {
		defer func() {
			if recover() != nil {
				matches = nil
			}
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
		if found, n, ok := s.completeMagic(t); ok {
			return found, cursor - n
		}
	}
	if quoted, ok := openString(line); ok {
		return s.inString(head, quoted), cursor - len(quoted)
	}
	word := tailWord(head)
	before := strings.TrimRight(head[:len(head)-len(word)], " \t")
	if !strings.HasSuffix(before, ".") {
		return append(s.fields(head[:len(head)-len(word)], word), s.words(code, word)...), cursor - len(word)
	}
	chain := tailExpr(strings.TrimSuffix(before, "."))
	if p := s.importOf(chain); p != nil {
		return prefixed(exported(p), word), cursor - len(word)
	}
	t, _ := s.probe(chain, head)
	if t == nil {
		return nil, cursor
	}
	return prefixed(engine.Members(t), word), cursor - len(word)
}

// fields completes the name of a field where one may begin in a composite literal.
func (s *Session) fields(head, word string) (out []string) {
	open, last := engine.Brackets(string(blankCommands(strings.Split(head, "\n"))))
	if len(open) == 0 || last != token.LBRACE && last != token.COMMA {
		return nil
	}
	at := open[len(open)-1]
	t, o := s.probe(tailExpr(head[:at]), head[:at]) // nothing where a block begins, behind a space
	if _, ok := o.(*types.TypeName); !ok {
		return nil
	}
	if st, ok := t.Underlying().(*types.Struct); ok && head[at] == '{' {
		for f := range st.Fields() {
			if f.Exported() || f.Pkg().Path() == "main" {
				out = append(out, f.Name())
			}
		}
	}
	return prefixed(out, word)
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
		for _, p := range paths() {
			last := p[strings.LastIndexByte(p, '/')+1:]
			if strings.HasPrefix(p, quoted) || quoted != "" && strings.HasPrefix(last, quoted) {
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
var declaredWord = regexp.MustCompile(`(?m)(?:^|[\s({;,])(?:var|const|func|type)?\s*` +
	`([\pL_][\pL\pN_]*)\s*(?:,\s*[\pL_][\pL\pN_]*\s*)*(?::=|=| [\pL\[*])`)

// words completes a name that stands alone.
func (s *Session) words(code, word string) []string {
	if word == "" {
		return nil
	}
	set := map[string]bool{}
	objects, imported := s.e.Names()
	for name := range objects {
		set[name] = true
	}
	for name := range imported {
		set[name] = true
	}
	for name := range helpers {
		set[name] = true
	}
	for _, name := range types.Universe.Names() {
		set[name] = true
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
		if !strings.HasPrefix(name, engine.Hidden) && token.IsIdentifier(name) || token.IsKeyword(name) {
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

// importOf returns the package that a name means, nil if it means none.
func (s *Session) importOf(name string) *types.Package {
	if !token.IsIdentifier(name) {
		return nil
	}
	o, path := s.e.Lookup(name)
	if o == nil && path == "" {
		path = linked(name)
	}
	if path == "" {
		return nil
	}
	return s.e.Package(path)
}

func exported(p *types.Package) (out []string) {
	for _, name := range p.Scope().Names() {
		if token.IsExported(name) && token.IsIdentifier(name) { // instances of generic types are no names
			out = append(out, name)
		}
	}
	return out
}

// paths returns the paths of all packages that cells may import, in order.
func paths() []string { return slices.Sorted(maps.Keys(engine.Packages())) }

// probe returns the type of an expression at the end of the text before the cursor, and what it is the name of.
func (s *Session) probe(expr, head string) (types.Type, types.Object) {
	if strings.TrimSpace(expr) == "" {
		return nil, nil
	}
	i := strings.LastIndex(head, expr)
	if i < 0 {
		i = len(head)
	}
	lines := strings.Split(head[:i], "\n")
	heads := []string{string(blankCommands(lines)), ""}
	if n := len(lines) - 1; n > 0 { // the line alone may not be parsed
		heads = []string{heads[0], string(blankCommands(lines[:n])) + "\n", ""}
	}
	for _, h := range heads {
		if t, o := s.e.Probe(h, expr); t != nil && t != types.Typ[types.Invalid] {
			return t, o
		}
	}
	return nil, nil
}
