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

// assemble returns the program with the imports and helpers that it needs. It type-checks the program and fixes errors
// about missing and unused names until there are none. It returns the first error that it cannot fix.
func (x *exporter) assemble(pictures string) ([]byte, error) {
	for {
		src, err := x.source(pictures)
		if err != nil {
			return nil, err
		}
		errs := x.interp.CheckProgram(src)
		if len(errs) == 0 {
			return src, nil
		}
		isUndefined := func(e types.Error) bool { return strings.HasPrefix(e.Msg, undefinedPrefix) }
		if slices.ContainsFunc(errs, isUndefined) { // the other errors may be consequences
			errs = slices.DeleteFunc(errs, func(e types.Error) bool { return !isUndefined(e) })
		}
		for _, e := range errs {
			if !x.fixError(e.Msg) {
				return nil, locateError(src, e)
			}
		}
	}
}

// source returns the program with the imports and helpers found so far.
func (x *exporter) source(pictures string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// The command krrlab notebook import makes a notebook of this program.\npackage " +
		"main\n\nimport (\n")
	for _, std := range []bool{true, false} {
		for _, p := range slices.Sorted(maps.Keys(x.imports)) {
			if isStandard(p) == std {
				fmt.Fprintf(&b, "%s %q\n", x.imports[p], p)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString(")\n\n// %% helpers\n")
	for _, name := range slices.Sorted(maps.Keys(x.helpers)) {
		b.WriteString("\n" + strings.ReplaceAll(x.helpers[name], "PICTURES", pictures) + "\n")
	}
	fmt.Fprintf(&b, "%s\nfunc main() {\n%s\n// %%%% helpers\n", &x.decls, &x.main)
	for _, name := range x.unused {
		fmt.Fprintf(&b, "_ = %s\n", name)
	}
	b.WriteString("}\n")
	if x.isTest { // a test keeps the line numbers of the cells, which formatting would change
		return b.Bytes(), nil
	}
	return format.Source(b.Bytes())
}

// locateError returns an error of a program with its place: the cell and line of a line comment, or else the cell mark
// before it.
func locateError(src []byte, e types.Error) error {
	pos := e.Fset.Position(e.Pos)
	if pos.Filename != "" {
		return fmt.Errorf("%s (%s, line %d)", e.Msg, pos.Filename, pos.Line)
	}
	marks := cellMark.FindAllString(string(src[:pos.Offset]), -1)
	return fmt.Errorf("%s: %s", strings.TrimLeft(marks[len(marks)-1], "\t/% "), e.Msg)
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
func (x *exporter) fixError(message string) bool {
	if m := unusedImport.FindStringSubmatch(message); m != nil {
		delete(x.imports, m[1])
		return true
	}
	if name, ok := strings.CutPrefix(message, unusedPrefix); ok {
		isMended := x.objects[name] != nil && !slices.Contains(x.unused, name)
		x.unused = append(x.unused, name)
		return isMended
	}
	name, ok := strings.CutPrefix(message, undefinedPrefix)
	if !ok {
		return false
	}
	for _, helper := range strings.Split(helperFile, "\n\n") {
		if strings.HasPrefix(helper, "// "+name+" ") {
			if x.helpers[name] = helper; x.isTest && name == "showLast" {
				x.helpers[name] = "func showLast(...any) {}"
			}
			return true
		}
	}
	for _, word := range strings.Fields(helperFile) {
		if p, err := strconv.Unquote(word); err == nil && path.Base(p) == name {
			x.imports[p] = ""
			return true
		}
	}
	return false
}

// helperFile declares what programs have for the built-in names of cells.
//
//go:embed helpers.go.txt
var helperFile string
