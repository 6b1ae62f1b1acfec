package golang

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"

	"github.com/cosmos72/gomacro/fast"
	"github.com/gopherdata/gophernotes/imports"

	"github.com/krrlab/lab/krrlab/notebook/selfref"
)

// imports makes the packages that a cell imports known before it is compiled, and puts
// their types right.
func (s *Session) imports(nodes []ast.Node) error {
	paths := map[string]fast.PackageName{}
	for _, n := range nodes {
		ast.Inspect(n, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ImportSpec); ok {
				if path, err := strconv.Unquote(spec.Path.Value); err == nil {
					paths[path] = ""
				}
			}
			_, body := n.(*ast.BlockStmt)
			return !body
		})
	}
	if len(paths) == 0 {
		return nil
	}
	if _, err := s.ir.Comp.ImportPackagesOrError(paths); err != nil {
		return err
	}
	s.settle()
	return nil
}

// settle puts right the compiled types that refer to themselves.
func (s *Session) settle() {
	u := s.ir.Comp.Universe
	if len(u.ReflectTypes) != s.settled {
		selfref.Settle(u)
		s.settled = len(u.ReflectTypes)
	}
}

// missing refuses packages that are not linked in, all that a cell imports in one message.
func (k *checker) missing(nodes []ast.Node) *trap {
	var texts []string
	var first ast.Node
	for _, n := range nodes {
		ast.Inspect(n, func(n ast.Node) bool {
			spec, ok := n.(*ast.ImportSpec)
			if !ok {
				return true
			}
			path, err := strconv.Unquote(spec.Path.Value)
			if _, known := imports.Packages[path]; err != nil || known || k.s.ir.Comp.KnownImports[path] != nil {
				return true
			}
			text := fmt.Sprintf("package %s is not in this kernel", path)
			if near := similar(path); len(near) > 0 {
				text += "; there is " + strings.Join(near, ", ")
			}
			if texts = append(texts, text); first == nil {
				first = spec
			}
			return true
		})
	}
	if first == nil {
		return nil
	}
	return k.at(first, "%s (nothing of the cell was imported; %%doc lists the packages)", strings.Join(texts, "; "))
}

// similar returns packages with the same last element, or one that begins so.
func similar(path string) []string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	var out []string
	for p := range imports.Packages {
		if q := p[strings.LastIndexByte(p, '/')+1:]; q == last || len(last) > 2 && (strings.HasPrefix(q, last) || strings.HasPrefix(last, q) && len(q) > 3) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), 3)]
}
