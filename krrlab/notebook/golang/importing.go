package golang

import (
	"fmt"
	"go/ast"
	"regexp"
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

// preferred are the packages of the standard library that a name means where several have it.
var preferred = map[string]string{
	"rand": "math/rand", "template": "text/template", "scanner": "text/scanner", "pprof": "runtime/pprof", "ast": "go/ast", "color": "image/color",
}

// packagesNamed returns the paths of the linked-in packages that cells know by a name, those of the standard
// library first.
func packagesNamed(name string) (std, others []string) {
	for path, p := range imports.Packages {
		if string(p.Name) != name && path[strings.LastIndexByte(path, '/')+1:] != name {
			continue
		}
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
			others = append(others, path)
		} else if path != "display" {
			std = append(std, path)
		}
	}
	slices.Sort(std)
	slices.Sort(others)
	return std, others
}

// autoImport adds imports of the packages of the standard library that a cell uses without them.
func (s *Session) autoImport(nodes []ast.Node) []ast.Node {
	k := &checker{s: s, local: map[string]bool{}}
	for _, n := range nodes {
		ast.Inspect(n, k.declared)
		ast.Inspect(n, k.importedAs)
	}
	seen := map[string]bool{}
	var add []ast.Node
	for _, n := range nodes {
		ast.Inspect(n, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			id, ok := sel.X.(*ast.Ident)
			if !ok || k.local[id.Name] || seen[id.Name] || s.ir.Comp.TryResolve(id.Name) != nil || s.ir.Comp.TryResolveType(id.Name) != nil {
				return true
			}
			seen[id.Name] = true
			std, _ := packagesNamed(id.Name)
			path := preferred[id.Name]
			if len(std) == 1 {
				path = std[0]
			}
			if path != "" {
				add = append(add, s.ir.Comp.ParseBytes([]byte(fmt.Sprintf("import %q", path)))...)
			}
			return true
		})
	}
	return append(add, nodes...)
}

// importedAs notes the names under which a cell imports packages.
func (k *checker) importedAs(n ast.Node) bool {
	if spec, ok := n.(*ast.ImportSpec); ok {
		path := strings.Trim(spec.Path.Value, "\"`")
		name := string(imports.Packages[path].Name)
		if name == "" {
			name = path[strings.LastIndexByte(path, '/')+1:]
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		k.local[name] = true
	}
	return true
}

// undefinedName finds the name that the interpreter does not know.
var undefinedName = regexp.MustCompile(`^undefined(?: identifier:)? "?(\w+)"?`)

// importLine says how to import what a name may mean, "" if no package has it.
func importLine(name string) string {
	std, others := packagesNamed(name)
	all := append(others, std...)
	if len(all) == 0 {
		return ""
	}
	for i, path := range all {
		all[i] = fmt.Sprintf("import %q", path)
	}
	return strings.Join(all[:min(len(all), 3)], " or ")
}
