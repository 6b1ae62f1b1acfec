package bindgen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Package is one package to bind.
type Package struct {
	Path  string
	As    string // path by which cells import it; "" for Path
	Types *types.Package
	files []*ast.File
	fset  *token.FileSet
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Name, Dir, Export string
	GoFiles, CgoFiles             []string
	DepOnly                       bool
	Error                         *struct{ Err string }
}

// Load returns the packages that the patterns name, in the order of their paths. The go
// command must be there; dir is a folder of the module.
func Load(dir string, patterns ...string) ([]*Package, error) {
	all, err := list(dir, patterns)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("bindgen: no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	var out []*Package
	for _, l := range all {
		if l.DepOnly {
			continue
		}
		p := &Package{Path: l.ImportPath, fset: fset}
		if p.Types, err = imp.Import(l.ImportPath); err != nil {
			return nil, fmt.Errorf("bindgen: %s: %w", l.ImportPath, err)
		}
		for _, name := range append(l.GoFiles, l.CgoFiles...) {
			f, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("bindgen: %w", err)
			}
			p.files = append(p.files, f)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// Paths returns the paths of the packages that the patterns name, whether they compile or
// not.
func Paths(dir string, patterns ...string) ([]string, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "--"}, patterns...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("bindgen: go list: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return strings.Fields(string(out)), nil
}

// list runs go list over the patterns and what they import.
func list(dir string, patterns []string) ([]listed, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Name,Dir,Export,GoFiles,CgoFiles,DepOnly,Error", "--"}, patterns...)
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("bindgen: go list: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	var all []listed
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("bindgen: go list: %w", err)
		}
		if l.Error != nil {
			return nil, fmt.Errorf("bindgen: %s: %s", l.ImportPath, strings.TrimSpace(l.Error.Err))
		}
		all = append(all, l)
	}
}

// name returns the path by which cells import the package.
func (p *Package) name() string {
	if p.As != "" {
		return p.As
	}
	return p.Path
}

// exported returns the exported objects of the package in the order of their names.
func (p *Package) exported() []types.Object {
	var out []types.Object
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		if o := scope.Lookup(name); o.Exported() {
			out = append(out, o)
		}
	}
	return out
}
