package engine

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// embedFiles gives the variables of f that have a directive //go:embed the contents of their files as initial values.
// embedded contains the files by the names that directives use. A variable must have the type string or []byte and name
// one file; embedFiles returns an error for a variable of another form, such as an embed.FS, because the variable would
// be empty. f was parsed with its comments.
func embedFiles(fset *token.FileSet, f *ast.File, embedded map[string][]byte) error {
	for _, d := range f.Decls {
		group, _ := d.(*ast.GenDecl)
		if group == nil || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			v := spec.(*ast.ValueSpec)
			pattern, hasDirective := embedPattern(v.Doc)
			if !hasDirective && !group.Lparen.IsValid() {
				pattern, hasDirective = embedPattern(group.Doc)
			}
			if !hasDirective {
				continue
			}
			content, ok := embedded[pattern]
			value := embeddedValue(v, content)
			if !ok || value == nil {
				return fmt.Errorf("%v: //go:embed is interpreted only for one file, in a string or []byte; import the "+
					"package in a %%%%go cell, where it is compiled", fset.Position(v.Pos()))
			}
			v.Values = []ast.Expr{value}
		}
	}
	return nil
}

// embedPattern returns the pattern of a directive //go:embed in a comment, and whether there is one. If there are
// several directives, their patterns are concatenated, which names no file.
func embedPattern(doc *ast.CommentGroup) (pattern string, ok bool) {
	if doc == nil {
		return "", false
	}
	for _, comment := range doc.List {
		text, isDirective := strings.CutPrefix(comment.Text, "//go:embed")
		if !isDirective || strings.TrimLeft(text, " \t") == text {
			continue
		}
		if text = strings.TrimSpace(text); strings.ContainsAny(text, "\"`") {
			if unquoted, err := strconv.Unquote(text); err == nil {
				text = unquoted
			}
		}
		pattern, ok = pattern+text, true
	}
	return pattern, ok
}

// embeddedValue returns an expression with the given content for the variable of v, or nil if its type is neither
// string nor []byte.
func embeddedValue(v *ast.ValueSpec, content []byte) ast.Expr {
	literal := &ast.BasicLit{ValuePos: v.Pos(), Kind: token.STRING, Value: strconv.Quote(string(content))}
	switch t := v.Type.(type) {
	case *ast.Ident:
		if t.Name == "string" {
			return literal
		}
	case *ast.ArrayType:
		if elem, ok := t.Elt.(*ast.Ident); ok && t.Len == nil && elem.Name == "byte" {
			return &ast.CallExpr{Fun: t, Lparen: v.Pos(), Args: []ast.Expr{literal}, Rparen: v.Pos()}
		}
	}
	return nil
}
