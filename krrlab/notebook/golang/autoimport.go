package golang

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"

	"github.com/gopherdata/gophernotes/imports"
)

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
