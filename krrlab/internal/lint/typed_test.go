package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// unit holds the Go files of one folder that are compiled together, with their types.
type unit struct {
	path  string // path of the package relative to the module
	test  bool   // the files are tests, type-checked with their package or as a package of their own
	files []*ast.File
	pkg   *types.Package
	info  types.Info
}

var fset = token.NewFileSet()

// units type-checks the module once for all tests: each package, and then its tests. Names in tests that cannot be
// resolved (the exports of export_test.go, and packages that only tests import) are ignored.
var units = sync.OnceValues(func() ([]*unit, error) {
	list := exec.Command("go", "list", "-export", "-deps",
		"-json=ImportPath,Dir,Export,GoFiles,TestGoFiles,XTestGoFiles,DepOnly", "./...", "testing")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	type listed struct {
		ImportPath, Dir, Export            string
		GoFiles, TestGoFiles, XTestGoFiles []string
		DepOnly                            bool
	}
	var packages []listed
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		packages = append(packages, l)
	}
	conf := types.Config{Error: func(error) {}, Importer: importer.ForCompiler(fset, "gc",
		func(path string) (io.ReadCloser, error) {
			return os.Open(exports[path])
		})}
	var us []*unit
	for _, l := range packages {
		path, ours := strings.CutPrefix(l.ImportPath, module)
		if !ours || l.DepOnly {
			continue
		}
		parse := func(names []string) (files []*ast.File) {
			for _, name := range names {
				f, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil,
					parser.SkipObjectResolution|parser.ParseComments)
				if err == nil {
					files = append(files, f)
				}
			}
			return files
		}
		check := func(u *unit, files []*ast.File) {
			u.path, u.info = strings.TrimPrefix(path, "/"), types.Info{Uses: map[*ast.Ident]types.Object{},
				Defs: map[*ast.Ident]types.Object{}}
			u.pkg, _ = conf.Check(l.ImportPath, fset, files, &u.info)
			us = append(us, u)
		}
		p := &unit{files: parse(l.GoFiles)}
		check(p, p.files)
		if in := (&unit{test: true, files: parse(l.TestGoFiles)}); len(in.files) > 0 {
			check(in, append(p.files[:len(p.files):len(p.files)], in.files...))
		}
		if ext := (&unit{test: true, files: parse(l.XTestGoFiles)}); len(ext.files) > 0 {
			check(ext, ext.files)
		}
	}
	return us, nil
})

const module = "github.com/krrlab/lab"

// checkedUnits returns the type-checked units of the module, or ends the test.
func checkedUnits(t *testing.T) []*unit {
	t.Helper()
	us, err := units()
	if err != nil || len(us) < 40 {
		t.Fatalf("%d packages, %v", len(us), err)
	}
	return us
}

// qualifiedName returns the name by which an object is known in the module, folder.Name or folder.Type.Method, or ""
// for other objects.
func qualifiedName(o types.Object) string {
	if o.Pkg() == nil {
		return ""
	}
	path, ours := strings.CutPrefix(o.Pkg().Path(), module)
	if !ours {
		return ""
	}
	path = strings.TrimPrefix(path, "/") + "."
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		typ := f.Signature().Recv().Type()
		if p, ok := typ.(*types.Pointer); ok {
			typ = p.Elem()
		}
		if n, ok := typ.(*types.Named); ok {
			return path + n.Obj().Name() + "." + o.Name()
		}
		return ""
	}
	if o.Parent() == o.Pkg().Scope() {
		return path + o.Name()
	}
	return ""
}
