package golang

import (
	"fmt"
	"go/ast"
	"sort"
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

// imported refuses packages that are not linked in.
func (k *checker) imported(n *ast.ImportSpec) *trap {
	path, err := strconv.Unquote(n.Path.Value)
	if err != nil {
		return nil
	}
	if _, ok := imports.Packages[path]; ok || k.s.ir.Comp.KnownImports[path] != nil {
		return nil
	}
	text := fmt.Sprintf("package %s is not in this kernel", path)
	if near := similar(path); len(near) > 0 {
		text += "; there is " + strings.Join(near, ", ")
	}
	return k.at(n, "%s (%%doc lists the packages)", text)
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
	sort.Strings(out)
	return out[:min(len(out), 3)]
}
