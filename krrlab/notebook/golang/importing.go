package golang

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// missingText says which packages are not linked in, and which may be meant.
func missingText(paths []string) string {
	var texts []string
	for _, path := range paths {
		text := fmt.Sprintf("package %s is not in this kernel", path)
		if near := similar(path); len(near) > 0 {
			text += "; there is " + strings.Join(near, ", ")
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ") + " (nothing of the cell was imported; %doc lists the packages)"
}

// similar returns packages with the same last element, or one that begins so.
func similar(path string) []string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	var out []string
	for p := range engine.Packages() {
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
	for path, known := range engine.Packages() {
		if known != name && path[strings.LastIndexByte(path, '/')+1:] != name {
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

// standard returns the package of the standard library that a name means.
func standard(name string) string {
	if path := preferred[name]; path != "" {
		return path
	}
	if std, _ := packagesNamed(name); len(std) == 1 {
		return std[0]
	}
	return ""
}

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

// single makes calls of Input and Password give the line alone where one value is wanted.
func single(file *ast.File, own func(name string) bool) {
	change := func(values []ast.Expr) {
		for _, v := range values {
			call, ok := v.(*ast.CallExpr)
			if !ok {
				continue
			}
			if id, ok := call.Fun.(*ast.Ident); ok && alone[id.Name] != "" && own(id.Name) {
				call.Fun = &ast.Ident{Name: alone[id.Name], NamePos: id.NamePos}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if len(n.Lhs) == len(n.Rhs) {
				change(n.Rhs)
			}
		case *ast.ValueSpec:
			if len(n.Names) == len(n.Values) {
				change(n.Values)
			}
		case *ast.CallExpr:
			change(n.Args)
		}
		return true
	})
}

// alone are the functions that give a line without an error.
var alone = map[string]string{"Input": engine.Hidden + "line", "Password": engine.Hidden + "secret"}
