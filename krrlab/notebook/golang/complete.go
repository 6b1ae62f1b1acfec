package golang

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// Complete returns the possible completions at the cursor, a byte offset, and the byte range of code that they replace.
// The range ends at the cursor, which is moved into the code if it is outside.
func (s *Session) Complete(code string, cursor int) (matches []string, start, end int) {
	cursor = min(max(cursor, 0), len(code))
	s.runOnWorker(func() {
		defer func() { _ = recover() }() // no completions if the analysis of unfinished code panics
		matches, start = s.complete(code, cursor)
	})
	if matches == nil {
		matches, start = []string{}, cursor
	}
	return matches, start, cursor
}

// complete returns the completions at the cursor, which must be inside the code, and the start of the text that they
// replace. It must be called in the goroutine that runs cells (runOnWorker).
func (s *Session) complete(code string, cursor int) (matches []string, start int) {
	head := code[:cursor]
	line := head[strings.LastIndexByte(head, '\n')+1:]
	if trimmed := strings.TrimLeft(line, " \t"); strings.HasPrefix(trimmed, "%") {
		if matches, n, ok := completeCommand(trimmed); ok {
			return matches, cursor - n
		}
	}
	// An open quote means that the cursor is inside a string, or in a comment if the quote is a slash.
	if _, quote := engine.OpenBrackets(blankCommands(head)); quote >= 0 && head[quote] != '/' {
		return completeString(head, head[quote+1:]), quote + 1
	}
	word := trailingName(head)
	analysis := s.cursorAt(head)
	if analysis == nil {
		return nil, cursor
	}
	switch parent := analysis.Path[len(analysis.Path)-2].(type) { // the last node is the name at the cursor
	case *ast.SelectorExpr:
		if pkg := importedPackage(analysis, parent.X); pkg != nil {
			matches = exportedNames(pkg)
		} else if t := analysis.Info.TypeOf(parent.X); t != nil {
			matches = engine.MemberNames(t)
		}
		return withPrefix(matches, word), cursor - len(word)
	case *ast.CompositeLit:
		matches = settableFields(analysis.Info.TypeOf(parent))
	}
	if word != "" {
		matches = append(matches, standaloneNames(analysis)...)
	}
	return withPrefix(matches, word), cursor - len(word)
}

// cursorAt analyzes a cell up to the cursor. If the cell cannot be parsed, only its last line is analyzed.
func (s *Session) cursorAt(head string) *engine.Cursor {
	lineStart := strings.LastIndexByte(head, '\n') + 1
	line := head[lineStart:]
	if strings.HasPrefix(strings.TrimSpace(line), "%") { // a command whose argument is code
		_, line, _ = strings.Cut(line, " ")
	}
	if analysis := s.interp.Cursor(blankCommands(head[:lineStart]) + line); analysis != nil {
		return analysis
	}
	return s.interp.Cursor(line)
}

// importedPackage returns the package that an expression denotes, or nil if it denotes none.
func importedPackage(analysis *engine.Cursor, x ast.Expr) *types.Package {
	if ident, ok := x.(*ast.Ident); ok {
		if pkgName, ok := analysis.Info.Uses[ident].(*types.PkgName); ok {
			return pkgName.Imported()
		}
	}
	return nil
}

// settableFields returns the names of the fields that a cell can set if t is a struct type.
func settableFields(t types.Type) (names []string) {
	if t == nil {
		return nil
	}
	if structType, ok := t.Underlying().(*types.Struct); ok {
		for field := range structType.Fields() {
			if field.Exported() || field.Pkg().Path() == "main" { // cells are compiled as package main
				names = append(names, field.Name())
			}
		}
	}
	return names
}

// trailingName returns the identifier at the end of s.
func trailingName(s string) string { return s[len(strings.TrimRightFunc(s, isNameRune)):] }

// isNameRune reports whether r can be part of an identifier.
func isNameRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// unfinishedImport matches code that ends within the quoted path of an import declaration.
var unfinishedImport = regexp.MustCompile(`(?s)(^|\n)\s*import\s*(\([^)]*|[\w.]*\s*)["` + "`" + `][^"` + "`" + `\n]*$`)

// completeString completes an import path or file name. head is the code before the quote and quoted is the text after
// it. An import path matches by its beginning or by the beginning of its last element. Hidden files match only if the
// name begins with a dot.
func completeString(head, quoted string) []string {
	if unfinishedImport.MatchString(head) {
		var matches []string
		for _, pkgPath := range packagePaths() {
			if strings.HasPrefix(pkgPath, quoted) || quoted != "" && strings.HasPrefix(path.Base(pkgPath), quoted) {
				matches = append(matches, pkgPath)
			}
		}
		return matches
	}
	dir, base := filepath.Split(quoted)
	searchDir := cmp.Or(dir, ".")
	entries, err := os.ReadDir(searchDir)
	if err != nil {
		return nil
	}
	var matches []string
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, base) || base == "" && strings.HasPrefix(name, ".") {
			continue
		}
		if entry.IsDir() {
			name += "/"
		}
		matches = append(matches, dir+name)
	}
	return matches
}

// standaloneNames returns the identifiers and keywords that can stand without a qualifier, sorted.
func standaloneNames(analysis *engine.Cursor) (sorted []string) {
	names := slices.Concat(slices.Collect(maps.Keys(analysis.Names)), slices.Collect(maps.Keys(builtInDocs)),
		types.Universe.Names())
	for _, name := range names {
		if !strings.HasPrefix(name, engine.ReservedPrefix) && token.IsIdentifier(name) {
			sorted = append(sorted, name)
		}
	}
	for tok := token.BREAK; tok <= token.VAR; tok++ {
		sorted = append(sorted, tok.String())
	}
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// withPrefix returns the names that start with word, sorted. If there are none, case is ignored.
func withPrefix(names []string, word string) []string {
	matches := []string{}
	lower := strings.ToLower(word)
	for _, ignoreCase := range []bool{false, true} {
		for _, name := range names {
			if strings.HasPrefix(name, word) || ignoreCase && strings.HasPrefix(strings.ToLower(name), lower) {
				matches = append(matches, name)
			}
		}
		if len(matches) > 0 {
			break
		}
	}
	slices.Sort(matches)
	return matches
}

// exportedNames returns the exported names of a package.
func exportedNames(pkg *types.Package) (names []string) {
	for _, name := range pkg.Scope().Names() {
		if token.IsExported(name) && token.IsIdentifier(name) { // instances of generic types are no identifiers
			names = append(names, name)
		}
	}
	return names
}

// packagePaths returns the sorted paths of all packages that are compiled into this program, the Jupyter kernel.
func packagePaths() []string { return slices.Sorted(maps.Keys(engine.Packages())) }
