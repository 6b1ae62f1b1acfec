package golang

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// Complete returns what may stand at the cursor, and the bytes of the code it replaces.
func (s *Session) Complete(code string, cursor int) (matches []string, start, end int) {
	cursor = min(max(cursor, 0), len(code))
	s.do(func() {
		defer func() { _ = recover() }()
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
	if _, quote := engine.OpenBrackets(blanked(head)); quote >= 0 && head[quote] != '/' {
		return s.inString(head, head[quote+1:]), quote + 1
	}
	word := tailWord(head)
	spot := s.spot(head)
	if spot == nil {
		return nil, cursor
	}
	n := len(spot.Path) - 1
	var found []string
	switch up := spot.Path[n-1].(type) {
	case *ast.SelectorExpr:
		if p := imported(spot, up.X); p != nil {
			found = exported(p)
		} else if t := spot.Info.TypeOf(up.X); t != nil {
			found = engine.Members(t)
		}
		return prefixed(found, word), cursor - len(word)
	case *ast.CompositeLit:
		found = fields(spot.Info.TypeOf(up))
	}
	if word != "" {
		found = append(found, words(spot)...)
	}
	return prefixed(found, word), cursor - len(word)
}

// spot looks at a cell up to the cursor; where it cannot be taken apart, at its last line.
func (s *Session) spot(head string) *engine.Cursor {
	i := strings.LastIndexByte(head, '\n') + 1
	line := head[i:]
	if strings.HasPrefix(strings.TrimSpace(line), "%") { // a command about code
		_, line, _ = strings.Cut(line, " ")
	}
	if spot := s.e.Cursor(blanked(head[:i]) + line); spot != nil {
		return spot
	}
	return s.e.Cursor(line)
}

// imported returns the package that an expression means, nil if it means none.
func imported(spot *engine.Cursor, x ast.Expr) *types.Package {
	if id, ok := x.(*ast.Ident); ok {
		if p, ok := spot.Info.Uses[id].(*types.PkgName); ok {
			return p.Imported()
		}
	}
	return nil
}

// fields returns the names of the fields of a struct that cells can set.
func fields(t types.Type) (out []string) {
	if t == nil {
		return nil
	}
	if st, ok := t.Underlying().(*types.Struct); ok {
		for f := range st.Fields() {
			if f.Exported() || f.Pkg().Path() == "main" {
				out = append(out, f.Name())
			}
		}
	}
	return out
}

// tailWord returns the identifier at the end of s.
func tailWord(s string) string { return s[len(strings.TrimRightFunc(s, ofName)):] }

// ofName reports whether a letter can stand in a name.
func ofName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

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

// words returns the names that can stand alone.
func words(spot *engine.Cursor) (out []string) {
	known := slices.Concat(slices.Collect(maps.Keys(spot.Names)), slices.Collect(maps.Keys(helpers)),
		types.Universe.Names())
	for _, name := range known {
		if !strings.HasPrefix(name, engine.HiddenPrefix) && token.IsIdentifier(name) {
			out = append(out, name)
		}
	}
	for tok := token.BREAK; tok <= token.VAR; tok++ {
		out = append(out, tok.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
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
