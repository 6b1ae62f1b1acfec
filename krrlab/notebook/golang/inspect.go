package golang

import (
	"cmp"
	"context"
	"go/ast"
	"go/types"
	"os/exec"
	"reflect"
	"slices"
	"strings"

	"github.com/gopherdata/gophernotes/imports"

	"github.com/krrlab/lab/krrlab/notebook/bindings"
	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// Inspect documents the name at the cursor, or the function or composite literal whose arguments are being written: it
// returns the declaration and the comment. Unless detailed is set, a text of more than maxTooltip bytes is cut.
func (s *Session) Inspect(code string, cursor int, detailed bool) (text string, ok bool) {
	const maxTooltip = 4000 // more than a tooltip of Jupyter shows without scrolling
	end := min(max(cursor, 0), len(code))
	end = len(code) - len(strings.TrimLeftFunc(code[end:], isNameRune))
	s.runOnWorker(func() {
		defer func() { _ = recover() }()
		text, ok = s.describe(code[:end])
	})
	if !detailed && len(text) > maxTooltip {
		text = strings.ToValidUTF8(text[:maxTooltip], "") + " …"
	}
	return text, ok
}

// describe documents the expression at the end of head. If it is unknown, the enclosing calls, literals and index
// expressions are tried, innermost first.
func (s *Session) describe(head string) (text string, ok bool) {
	atCursor := s.cursorAt(head)
	if atCursor == nil {
		return "", false
	}
	nameIndex := len(atCursor.Path) - 1 // the name at the cursor
	candidates := []ast.Expr{atCursor.Path[nameIndex].(*ast.Ident)}
	if sel, ok := atCursor.Path[nameIndex-1].(*ast.SelectorExpr); ok {
		candidates[0] = sel
	}
	for i, node := range slices.Backward(atCursor.Path[:nameIndex]) {
		switch node := node.(type) {
		case *ast.CallExpr:
			if node.Fun != atCursor.Path[i+1] {
				candidates = append(candidates, node.Fun)
			}
		case *ast.CompositeLit:
			candidates = append(candidates, node.Type)
		case *ast.IndexExpr:
			candidates = append(candidates, node.X)
		}
	}
	for _, x := range candidates {
		if text, ok = s.describeExpr(atCursor, x); ok {
			break
		}
	}
	return text, ok
}

// describeExpr documents a name or a selector.
func (s *Session) describeExpr(atCursor *engine.Cursor, x ast.Expr) (text string, ok bool) {
	switch x := x.(type) {
	case *ast.Ident:
		return s.describeWord(atCursor, x.Name)
	case *ast.SelectorExpr:
		if pkg := importedPackage(atCursor, x.X); pkg != nil {
			return s.describeObject(engine.ImportPath(pkg), x.Sel.Name, pkg.Scope().Lookup(x.Sel.Name))
		}
		if t := atCursor.Info.TypeOf(x.X); t != nil {
			path, name := typeName(t)
			return s.describeObject(path, name+"."+x.Sel.Name, engine.LookupMember(t, x.Sel.Name))
		}
	}
	return "", false
}

// noCommentsHint returns a text to append to a declaration without a comment, if the comments of the package are in
// neither the program nor the reach of the go command. For other packages it returns "".
func noCommentsHint(path string) string {
	if !engine.IsCompiled(path) || hasGo() {
		return ""
	}
	return "\n\n(This program was built without the comments of its packages, and Go is not installed here to read " +
		"them from the source: see go.dev/dl, or take a release of krrlab.)"
}

// hasGo reports whether there is a go command.
func hasGo() bool {
	_, err := exec.LookPath("go")
	return err == nil
}

// lookupDoc returns the declaration and comment of a name in a package, or of the package if name is "". They come from
// the bindings or else from go doc.
func (s *Session) lookupDoc(path, name string) (text string, ok bool) {
	if entry, ok := bindings.Lookup(path, name); ok {
		return strings.TrimSpace(entry.Decl + "\n\n" + entry.Doc), true
	}
	if path == "" || path == "main" {
		return "", false
	}
	text, err := s.finder.Doc(context.Background(), path, name)
	if help := fieldHelp(path, name); err == nil && help != "" {
		text += "\n\n" + help
	}
	return text, err == nil && text != ""
}

// fieldHelp returns the help tag of a field Type.Field of a bound package, or "" if there is none.
func fieldHelp(path, name string) string {
	typeName, fieldName, _ := strings.Cut(name, ".")
	if boundType := imports.Packages[path].Types[typeName]; boundType != nil && boundType.Kind() == reflect.Struct {
		structField, _ := boundType.FieldByName(fieldName)
		return structField.Tag.Get("help")
	}
	return ""
}

// describeObject documents an object of a package, or a field or method, for which name is Type.Member.
func (s *Session) describeObject(path, name string, obj types.Object) (string, bool) {
	if text, ok := s.lookupDoc(path, name); ok || obj == nil {
		return text, ok
	}
	return engine.ObjectString(obj) + cmp.Or(s.typeDoc(obj.Type()), noCommentsHint(path)), true
}

// typeName returns the package path and the name of a named type or of a pointer to one.
func typeName(t types.Type) (path, name string) {
	t = types.Unalias(t)
	if pointer, ok := t.(*types.Pointer); ok {
		t = types.Unalias(pointer.Elem())
	}
	if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != nil {
		return engine.ImportPath(named.Obj().Pkg()), named.Obj().Name()
	}
	return "", ""
}

// typeDoc returns the declaration and comment of a named compiled type, preceded by an empty line. It returns "" for
// other types.
func (s *Session) typeDoc(t types.Type) string {
	path, name := typeName(t)
	if !engine.IsCompiled(path) {
		return ""
	}
	if text, ok := s.lookupDoc(path, name); ok {
		return "\n\n" + text
	}
	return noCommentsHint(path)
}

// describeWord documents a single identifier: a variable, function or type of the notebook, or a package.
func (s *Session) describeWord(atCursor *engine.Cursor, name string) (string, bool) {
	if doc, ok := builtInDocs[name]; ok && (atCursor.Names[name] == s.builtIns[name] || name == "display") {
		return doc, true
	}
	path := ""
	switch obj := atCursor.Names[name].(type) {
	case nil:
		path = implicitImport(name)
	case *types.PkgName:
		path = engine.ImportPath(obj.Imported())
	default:
		return engine.ObjectString(obj) + s.typeDoc(obj.Type()), true
	}
	if path == "" && types.Universe.Lookup(name) != nil {
		return s.lookupDoc("builtin", name)
	}
	text, ok := s.lookupDoc(path, "")
	if hint := noCommentsHint(path); !ok && hint != "" {
		return "package " + path + hint, true
	}
	return text, ok
}

// builtInDocs documents the names that cells can use without declaring or importing them.
var builtInDocs = map[string]string{
	"ctx": "var ctx context.Context\n\nThe context of the cell: an interrupt cancels it. context.Background() " +
		"is the same in a cell.",
	"Display":   "func Display(v any)\n\nDisplay shows a value as the last expression of a cell is shown.",
	"DisplayID": "func DisplayID(id string, v any)\n\nDisplayID shows a value that Update can replace.",
	"Update":    "func Update(id string, v any)\n\nUpdate replaces what DisplayID showed with the same id by v.",
	"Clear":     "func Clear()\n\nClear empties the output of the cell when the next output comes.",
	"Input":     "func Input(prompt string) string\n\nInput asks the reader for a line; without one the cell fails.",
	"Password":  "func Password(prompt string) string\n\nPassword asks the reader for a line that is not shown.",
	"Progress": "func Progress() func(krrlab.Event) error\n\nProgress returns a Monitor for a krrlab.Config that " +
		"shows one line: stage, share or iteration, residual, time left.",
	"Explore": "func Explore(subject any, options ...any)\n\nExplore shows a panel of controls. Explore(lab, " +
		"quality.Options{}) runs a stage whenever one of its options, or the lab's preconditioner, is changed; " +
		"Explore(lab) solves; Explore(f) calls a function func(o Options) (value, error) whose struct has fields with " +
		"tags, such as N int `flag:\"n\" default:\"100\" check:\"[10,1000]\" help:\"points\"`.",
	"display": "package display\n\nWraps data for display: display.HTML, Markdown, Math, SVG, PNG, File and others.",
}
