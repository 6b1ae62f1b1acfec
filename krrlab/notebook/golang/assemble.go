package golang

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// assemble returns the program with the imports and helpers that it needs. The names of picture files begin with
// picturePrefix. assemble type-checks the program and fixes errors about missing and unused names until there are none.
// It returns the first error that it cannot fix.
func (exp *exporter) assemble(picturePrefix string) ([]byte, error) {
	for {
		src, err := exp.source(picturePrefix)
		if err != nil {
			return nil, err
		}
		errs := exp.interp.CheckProgram(src)
		if len(errs) == 0 {
			return src, nil
		}
		isUndefined := func(typeErr types.Error) bool { return strings.HasPrefix(typeErr.Msg, undefinedPrefix) }
		if slices.ContainsFunc(errs, isUndefined) { // the other errors may be consequences
			errs = slices.DeleteFunc(errs, func(typeErr types.Error) bool { return !isUndefined(typeErr) })
		}
		for _, typeErr := range errs {
			if !exp.fixError(typeErr.Msg) {
				return nil, locateError(src, typeErr)
			}
		}
	}
}

// source returns the program with the imports and helpers found so far.
func (exp *exporter) source(picturePrefix string) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString("// The command krrlab notebook import makes a notebook of this program.\npackage " +
		"main\n\nimport (\n")
	for _, wantStandard := range []bool{true, false} {
		for _, path := range slices.Sorted(maps.Keys(exp.imports)) {
			if isStandard(path) == wantStandard {
				fmt.Fprintf(&text, "%s %q\n", exp.imports[path], path)
			}
		}
		text.WriteString("\n")
	}
	text.WriteString(")\n\n// %% helpers\n")
	for _, name := range slices.Sorted(maps.Keys(exp.helpers)) {
		text.WriteString("\n" + strings.ReplaceAll(exp.helpers[name], "PICTURES", picturePrefix) + "\n")
	}
	fmt.Fprintf(&text, "%s\nfunc main() {\n%s\n// %%%% helpers\n", &exp.decls, &exp.main)
	for _, name := range exp.unusedVars {
		fmt.Fprintf(&text, "_ = %s\n", name)
	}
	text.WriteString("}\n")
	if exp.isTest { // a test keeps the line numbers of the cells, which formatting would change
		return text.Bytes(), nil
	}
	return format.Source(text.Bytes())
}

// locateError returns an error of a program with its position: the cell and line of a line comment, or else the cell
// mark before it.
func locateError(src []byte, typeErr types.Error) error {
	pos := typeErr.Fset.Position(typeErr.Pos)
	if pos.Filename != "" {
		return fmt.Errorf("%s (%s, line %d)", typeErr.Msg, pos.Filename, pos.Line)
	}
	marks := cellMark.FindAllString(string(src[:pos.Offset]), -1)
	return fmt.Errorf("%s: %s", strings.TrimLeft(marks[len(marks)-1], "\t/% "), typeErr.Msg)
}

// Beginnings of messages of go/types.
const (
	undefinedPrefix = "undefined: "
	unusedPrefix    = "declared and not used: "
)

// unusedImport matches the message of go/types for an import without a use.
var unusedImport = regexp.MustCompile(`^"(.*?)" imported .*not used`)

// fixError removes the cause of an error of the program, given its message, and reports whether it could. It adds a
// missing helper or import, removes an unused import, and uses an unused variable of a cell.
func (exp *exporter) fixError(message string) bool {
	if match := unusedImport.FindStringSubmatch(message); match != nil {
		delete(exp.imports, match[1])
		return true
	}
	if name, ok := strings.CutPrefix(message, unusedPrefix); ok {
		isFixable := exp.objects[name] != nil && !slices.Contains(exp.unusedVars, name)
		exp.unusedVars = append(exp.unusedVars, name)
		return isFixable
	}
	name, ok := strings.CutPrefix(message, undefinedPrefix)
	if !ok {
		return false
	}
	for _, helper := range strings.Split(helperFile, "\n\n") {
		if strings.HasPrefix(helper, "// "+name+" ") {
			if exp.helpers[name] = helper; exp.isTest && name == "showLast" {
				exp.helpers[name] = "func showLast(...any) {}"
			}
			return true
		}
	}
	for _, word := range strings.Fields(helperFile) { // the quoted words are import paths
		if importPath, err := strconv.Unquote(word); err == nil && path.Base(importPath) == name {
			exp.imports[importPath] = ""
			return true
		}
	}
	return false
}

// helperFile contains the imports and declarations that replace the built-in names of cells in programs. Each
// declaration has a comment that begins with its name, and no blank lines.
//
//go:embed helpers.go.txt
var helperFile string
