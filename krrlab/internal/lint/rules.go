package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"regexp"
	"strings"
)

// rules are the checks of one package, by name.
var rules = map[string]func(*Tree, *Package) []Violation{
	"floors":   checkFloors,
	"silence":  checkSilence,
	"process":  checkProcess,
	"manual":   checkManual,
	"comments": checkComments,
}

// Check returns every violation of the rules in t.
func Check(t *Tree) []Violation {
	out := append([]Violation(nil), t.Broken...)
	for _, p := range t.Packages {
		for _, name := range []string{"floors", "silence", "process", "manual", "comments"} {
			out = append(out, rules[name](t, p)...)
		}
	}
	for _, f := range t.Files {
		out = append(out, checkFile(f)...)
	}
	return out
}

// uses calls visit for every selector name.sel in the file, name being that of the
// package at path.
func (f *File) uses(path string, visit func(sel string, line int)) {
	name := f.importName(path)
	if name == "" || name == "_" || name == "." {
		return
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
				visit(s.Sel.Name, f.line(s))
			}
		}
		return true
	})
}

// checkSilence finds printing below the bench.
func checkSilence(t *Tree, p *Package) (out []Violation) {
	if floor, ok := floors[p.Path]; !ok || floor >= stages {
		return nil
	}
	for _, f := range p.Files {
		add := func(line int, what string) {
			out = append(out, Violation{f.Name, line, fmt.Sprintf("%s in %s; below floor %d return it, or call a hook", what, p.Path, stages)})
		}
		f.uses("fmt", func(sel string, line int) {
			if strings.HasPrefix(sel, "Print") {
				add(line, "fmt."+sel)
			}
		})
		f.uses("os", func(sel string, line int) {
			if sel == "Stdout" || sel == "Stderr" || sel == "Stdin" {
				add(line, "os."+sel)
			}
		})
		for _, imp := range f.imports() {
			if imp.path == "log" || imp.path == "log/slog" {
				add(imp.line, "import of "+imp.path)
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if id, ok := c.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
					add(f.line(c), "the built-in "+id.Name)
				}
			}
			return true
		})
	}
	return out
}

// processWords are the parts of package os that only a command may use.
var processWords = map[string]string{
	"Exit": "exits", "Getenv": "reads the environment", "LookupEnv": "reads the environment",
	"Environ": "reads the environment", "ExpandEnv": "reads the environment", "Setenv": "changes the environment",
	"Unsetenv": "changes the environment", "UserCacheDir": "reads the environment", "UserHomeDir": "reads the environment",
	"UserConfigDir": "reads the environment", "Args": "reads the command line",
}

// ownProcess are those that a package uses all the same, for its default: accel.EnvBLAS, datasets.Dirs.
var ownProcess = map[string]bool{"krrlab/accel Getenv": true, "datasets Getenv": true, "datasets UserCacheDir": true}

// checkProcess finds what only a main may do: exit, read the environment, choose the
// BLAS of the process.
func checkProcess(t *Tree, p *Package) (out []Violation) {
	if strings.HasPrefix(p.Path, "krrlab/cmd/") {
		return nil
	}
	for _, f := range p.Files {
		f.uses("os", func(sel string, line int) {
			if what := processWords[sel]; what != "" && !ownProcess[p.Path+" "+sel] {
				out = append(out, Violation{f.Name, line, fmt.Sprintf("os.%s %s in %s; only krrlab/cmd may, pass the value in", sel, what, p.Path)})
			}
		})
		f.uses("log", func(sel string, line int) {
			if strings.HasPrefix(sel, "Fatal") {
				out = append(out, Violation{f.Name, line, fmt.Sprintf("log.%s exits in %s; return an error", sel, p.Path)})
			}
		})
		f.uses(t.Module+"/krrlab/accel", func(sel string, line int) {
			if sel == "Use" {
				out = append(out, Violation{f.Name, line, fmt.Sprintf("accel.Use in %s; only krrlab/cmd chooses the BLAS of the process", p.Path)})
			}
		})
	}
	return out
}

// sentenceEnd finds the end of a sentence: its stop, and a space or the end behind it.
var sentenceEnd = regexp.MustCompile(`[.!?:][)"”]?(\s|$)`)

// checkManual counts the sentences of the package's comment: a manual needs three, an
// internal package two, a command one.
func checkManual(t *Tree, p *Package) []Violation {
	want := 3
	switch {
	case p.Name == "main":
		want = 1
	case strings.Contains(p.Path, "internal/"):
		want = 2
	}
	best := 0
	for _, f := range p.Files {
		if f.AST.Doc != nil {
			best = max(best, len(sentenceEnd.FindAllString(f.AST.Doc.Text(), -1)))
		}
	}
	if best >= want {
		return nil
	}
	return []Violation{{p.Files[0].Name, 1, fmt.Sprintf("package %s has a comment of %d sentences; write at least %d: what it is, when to use it, how to choose (doc.go)",
		p.Path, best, want)}}
}

// customary are methods whose name says all.
var customary = map[string]bool{"Error": true, "String": true, "Unwrap": true, "Len": true, "Less": true, "Swap": true}

// checkComments finds exported names without a comment.
func checkComments(t *Tree, p *Package) (out []Violation) {
	if p.Name == "main" {
		return nil
	}
	for _, f := range p.Files {
		add := func(n ast.Node, kind, name string) {
			out = append(out, Violation{f.Name, f.line(n), fmt.Sprintf("exported %s %s has no comment; say what it is, with formula, shapes and units where it has them", kind, name)})
		}
		for _, d := range f.AST.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if kind, name, ok := funcName(d); ok && d.Doc == nil {
					add(d, kind, name)
				}
			case *ast.GenDecl:
				checkDecl(d, add)
			}
		}
	}
	return out
}

// checkDecl calls add for each exported type, constant and variable without a comment.
func checkDecl(d *ast.GenDecl, add func(n ast.Node, kind, name string)) {
	documented := d.Doc != nil
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				add(s, "type", s.Name.Name)
			}
		case *ast.ValueSpec:
			// A constant that continues an enumeration shares its comment.
			documented = documented && s.Values == nil || d.Doc != nil || s.Doc != nil || s.Comment != nil
			for _, n := range s.Names {
				if n.IsExported() && !documented {
					add(n, map[token.Token]string{token.CONST: "constant", token.VAR: "variable"}[d.Tok], n.Name)
				}
			}
		}
	}
}

// funcName returns what d declares, and whether it must have a comment.
func funcName(d *ast.FuncDecl) (kind, name string, exported bool) {
	if d.Recv == nil {
		return "function", d.Name.Name, d.Name.IsExported()
	}
	recv := d.Recv.List[0].Type
	for {
		switch r := recv.(type) {
		case *ast.StarExpr:
			recv = r.X
			continue
		case *ast.IndexExpr:
			recv = r.X
			continue
		case *ast.IndexListExpr:
			recv = r.X
			continue
		case *ast.Ident:
			return "method", r.Name + "." + d.Name.Name, r.IsExported() && d.Name.IsExported() && !customary[d.Name.Name]
		}
		return "", "", false
	}
}

// unfinished finds the words of unfinished work; they are split here so that this
// file does not hold them.
var unfinished = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}, "|") + `)\b`)

// checkFile checks the format of a Go file and looks for unfinished work in any.
func checkFile(f *File) (out []Violation) {
	if f.AST != nil {
		if want, err := format.Source(f.Src); err == nil && !bytes.Equal(want, f.Src) {
			out = append(out, Violation{f.Name, firstDifference(f.Src, want), "is not formatted; run gofmt -w " + f.Name})
		}
	}
	for i, line := range bytes.Split(f.Src, []byte("\n")) {
		if w := unfinished.Find(line); w != nil {
			out = append(out, Violation{f.Name, i + 1, fmt.Sprintf("%s; finish it, or open an issue and take the word out", w)})
		}
	}
	return out
}

// firstDifference returns the first line in which a and b differ.
func firstDifference(a, b []byte) int {
	line := 1
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == '\n' {
			line++
		}
	}
	return line
}
