package golang

import (
	"cmp"
	"context"
	"errors"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/gopherdata/gophernotes/imports"

	"github.com/krrlab/lab/krrlab/notebook/bindings"
	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/modules"
)

// Inspect returns the signature and the comment of the name at the cursor, or of the
// function whose arguments are being written. more asks for all there is.
func (s *Session) Inspect(code string, cursor int, more bool) (text string, ok bool) {
	end := min(max(cursor, 0), len(code))
	end = len(code) - len(strings.TrimLeftFunc(code[end:], ofName))
	s.do(func() {
		defer func() { _ = recover() }()
		text, ok = s.describe(code[:end], more)
	})
	return text, ok
}

// describe documents the expression at the end of code, or else the nearest call or literal that it stands in.
func (s *Session) describe(head string, more bool) (string, bool) {
	spot := s.spot(head)
	if spot == nil {
		return "", false
	}
	n := len(spot.Path) - 1
	found := []ast.Expr{spot.Path[n].(*ast.Ident)}
	if sel, ok := spot.Path[n-1].(*ast.SelectorExpr); ok {
		found[0] = sel
	}
	for i, at := range slices.Backward(spot.Path[:n]) {
		switch at := at.(type) {
		case *ast.CallExpr:
			if at.Fun != spot.Path[i+1] {
				found = append(found, at.Fun)
			}
		case *ast.CompositeLit:
			found = append(found, at.Type)
		case *ast.IndexExpr:
			found = append(found, at.X)
		}
	}
	for _, x := range found {
		switch x := x.(type) {
		case *ast.Ident:
			if text, ok := s.describeWord(spot, x.Name, more); ok {
				return text, true
			}
		case *ast.SelectorExpr:
			if p := imported(spot, x.X); p != nil {
				return s.describeObject(p.Path(), x.Sel.Name, p.Scope().Lookup(x.Sel.Name), more)
			}
			if t := spot.Info.TypeOf(x.X); t != nil {
				path, name := named(t)
				member := engine.Member(t, x.Sel.Name)
				if text, ok := s.describeObject(path, name+"."+x.Sel.Name, member, more); ok {
					return text, true
				}
			}
		}
	}
	return "", false
}

// noComments follows a declaration whose comment is not in this program, where there is no Go to ask.
const noComments = "(This program was built without the comments of its packages, and Go is not installed here to read " +
	"them from the source: see go.dev/dl, or take a release of krrlab.)"

// lookup returns declaration and comment of a name of a package, "" for the package itself: from the bindings, or else
// from go doc. Without both, missing is noComments for a package of this program.
func (s *Session) lookup(path, name string, more bool) (text string, ok bool, missing string) {
	if e, ok := bindings.Lookup(path, name); ok {
		return entryText(e, more), true, ""
	}
	if path == "" || path == "main" {
		return "", false, ""
	}
	text, err := s.finder.Doc(context.Background(), path, name)
	if errors.Is(err, modules.ErrNoGo) && engine.Packages()[path] != "" {
		missing = "\n\n" + noComments
	}
	if help := fieldHelp(path, name); err == nil && help != "" {
		text += "\n\n" + help
	}
	return text, err == nil && text != "", missing
}

// fieldHelp returns the help tag of a field Type.Field of a bound package, "" if there is none.
func fieldHelp(path, name string) string {
	typ, field, _ := strings.Cut(name, ".")
	if t := imports.Packages[path].Types[typ]; t != nil && t.Kind() == reflect.Struct {
		f, _ := t.FieldByName(field)
		return f.Tag.Get("help")
	}
	return ""
}

func entryText(e bindings.Entry, more bool) string {
	doc := e.Doc
	if !more && len(doc) > 4000 {
		doc = strings.ToValidUTF8(doc[:4000], "") + " …"
	}
	return strings.TrimSpace(e.Decl + "\n\n" + doc)
}

// describeObject documents a name of a package, or a field or method of a type, which is written behind that.
func (s *Session) describeObject(path, name string, o types.Object, more bool) (string, bool) {
	text, ok, missing := s.lookup(path, name, more)
	if ok || o == nil {
		return text, ok
	}
	return engine.ObjectString(o) + cmp.Or(s.typeDoc(o.Type(), more), missing), true
}

// named returns the path and the name of a type, or of what it points to.
func named(t types.Type) (path, name string) {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if n, ok := t.(*types.Named); ok && n.Obj().Pkg() != nil {
		return n.Obj().Pkg().Path(), n.Obj().Name()
	}
	return "", ""
}

// typeDoc returns declaration and comment of a named compiled type, below an empty line; "" for other types.
func (s *Session) typeDoc(t types.Type, more bool) string {
	path, name := named(t)
	if engine.Packages()[path] == "" {
		return ""
	}
	text, ok, missing := s.lookup(path, name, more)
	if !ok {
		return missing
	}
	return "\n\n" + text
}

// describeWord documents a variable, function or type of the notebook, or a package.
func (s *Session) describeWord(spot *engine.Cursor, name string, more bool) (string, bool) {
	if doc, ok := helpers[name]; ok && (spot.Names[name] == s.own[name] || name == "display") {
		return doc, true
	}
	path := ""
	switch o := spot.Names[name].(type) {
	case nil:
		path = linked(name)
	case *types.PkgName:
		path = o.Imported().Path()
	default:
		return engine.ObjectString(o) + s.typeDoc(o.Type(), false), true
	}
	text, ok, missing := s.lookup(path, "", more)
	if missing != "" {
		return "package " + path + missing, true
	}
	return text, ok
}

// helpers are the names that cells find without an import.
var helpers = map[string]string{
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
	"display": "package display\n\nWraps data for display: display.HTML, Markdown, Math, SVG, PNG, File and others.",
}
