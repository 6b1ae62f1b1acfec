package lint

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Violation is one place where a rule is broken.
type Violation struct {
	File string // path in the module
	Line int
	Text string // what is wrong and what to do
}

// String returns "file:line: text".
func (v Violation) String() string { return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.Text) }

// File is one file of the module.
type File struct {
	Name string // path in the module, with slashes
	Src  []byte
	AST  *ast.File // nil unless it is a Go file that parses
	fset *token.FileSet
}

// line returns the line of a node.
func (f *File) line(n ast.Node) int { return f.fset.Position(n.Pos()).Line }

type importLine struct {
	path string
	line int
}

func (f *File) imports() (out []importLine) {
	for _, s := range f.AST.Imports {
		if p, err := strconv.Unquote(s.Path.Value); err == nil {
			out = append(out, importLine{p, f.line(s)})
		}
	}
	return out
}

// importName returns the name by which the file calls the package at path, or "".
func (f *File) importName(pkg string) string {
	for _, s := range f.AST.Imports {
		if p, _ := strconv.Unquote(s.Path.Value); p == pkg {
			if s.Name != nil {
				return s.Name.Name
			}
			return path.Base(pkg)
		}
	}
	return ""
}

// Package is one folder of Go files.
type Package struct {
	Path  string  // in the module; "." for its root
	Name  string  // of the package clause
	Files []*File // without tests; never empty
}

// Tree is the source of a module.
type Tree struct {
	Module   string
	Packages []*Package // those with a file that is no test
	Files    []*File    // every text that the rules read, tests too
	Broken   []Violation
}

// local returns the path in the module of an import path, and whether it is in it.
func (t *Tree) local(imp string) (string, bool) {
	if imp == t.Module {
		return ".", true
	}
	return strings.CutPrefix(imp, t.Module+"/")
}

// Load reads the module whose go.mod is in the folder root. It leaves out folders that
// begin with a dot or an underscore, testdata, and what is built.
func Load(root string) (*Tree, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	t := &Tree{Module: moduleName(mod)}
	if t.Module == "" {
		return nil, fmt.Errorf("lint: %s/go.mod names no module", root)
	}
	fset := token.NewFileSet()
	byPath := map[string]*Package{}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			hidden := base[0] == '.' || base[0] == '_' || base == "testdata" || base == "bin" || base == "out"
			if hidden && name != root {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !isText(base) {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return t.add(fset, byPath, name, filepath.ToSlash(rel))
	})
	slices.SortFunc(t.Packages, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	return t, err
}

// isText reports whether the rules read a file of this name.
func isText(base string) bool {
	switch filepath.Ext(base) {
	case ".go", ".md", ".py", ".sh", ".s", ".h", ".c":
		return true
	}
	return base == "Makefile"
}

func (t *Tree) add(fset *token.FileSet, byPath map[string]*Package, name, rel string) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f := &File{Name: rel, Src: src, fset: fset}
	t.Files = append(t.Files, f)
	if path.Ext(rel) != ".go" {
		return nil
	}
	f.AST, err = parser.ParseFile(fset, rel, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		t.Broken = append(t.Broken, Violation{rel, 1, "does not parse; fix it: " + first})
		f.AST = nil
		return nil
	}
	if strings.HasSuffix(rel, "_test.go") {
		return nil
	}
	dir := path.Dir(rel)
	p := byPath[dir]
	if p == nil {
		p = &Package{Path: dir, Name: f.AST.Name.Name}
		byPath[dir] = p
		t.Packages = append(t.Packages, p)
	}
	p.Files = append(p.Files, f)
	return nil
}

func moduleName(mod []byte) string {
	for s := bufio.NewScanner(bytes.NewReader(mod)); s.Scan(); {
		if name, ok := strings.CutPrefix(strings.TrimSpace(s.Text()), "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}
