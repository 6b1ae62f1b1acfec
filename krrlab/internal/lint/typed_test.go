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
	type listedPackage struct {
		ImportPath, Dir, Export            string
		GoFiles, TestGoFiles, XTestGoFiles []string
		DepOnly                            bool
	}
	var packages []listedPackage
	exports := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var entry listedPackage
		if err := decoder.Decode(&entry); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[entry.ImportPath] = entry.Export
		packages = append(packages, entry)
	}
	config := types.Config{Error: func(error) {}, Importer: importer.ForCompiler(fset, "gc",
		func(path string) (io.ReadCloser, error) {
			return os.Open(exports[path])
		})}
	var all []*unit
	for _, entry := range packages {
		path, ours := strings.CutPrefix(entry.ImportPath, module)
		if !ours || entry.DepOnly {
			continue
		}
		parse := func(names []string) (files []*ast.File) {
			for _, name := range names {
				file, err := parser.ParseFile(fset, filepath.Join(entry.Dir, name), nil,
					parser.SkipObjectResolution|parser.ParseComments)
				if err == nil {
					files = append(files, file)
				}
			}
			return files
		}
		check := func(u *unit, files []*ast.File) {
			u.path, u.info = strings.TrimPrefix(path, "/"), types.Info{Uses: map[*ast.Ident]types.Object{},
				Defs: map[*ast.Ident]types.Object{}}
			u.pkg, _ = config.Check(entry.ImportPath, fset, files, &u.info)
			all = append(all, u)
		}
		pkg := &unit{files: parse(entry.GoFiles)}
		check(pkg, pkg.files)
		if internal := (&unit{test: true, files: parse(entry.TestGoFiles)}); len(internal.files) > 0 {
			check(internal, append(pkg.files[:len(pkg.files):len(pkg.files)], internal.files...))
		}
		if external := (&unit{test: true, files: parse(entry.XTestGoFiles)}); len(external.files) > 0 {
			check(external, external.files)
		}
	}
	return all, nil
})

const module = "github.com/krrlab/lab"

// checkedUnits returns the type-checked units of the module, or ends the test.
func checkedUnits(t *testing.T) []*unit {
	t.Helper()
	all, err := units()
	if err != nil || len(all) < 40 {
		t.Fatalf("%d packages, %v", len(all), err)
	}
	return all
}

// qualifiedName returns the name of an object at package level or of a method of this module, as folder.Name or
// folder.Type.Method, and "" for other objects.
func qualifiedName(object types.Object) string {
	if object.Pkg() == nil {
		return ""
	}
	path, ours := strings.CutPrefix(object.Pkg().Path(), module)
	if !ours {
		return ""
	}
	path = strings.TrimPrefix(path, "/") + "."
	if function, ok := object.(*types.Func); ok && function.Signature().Recv() != nil {
		typ := function.Signature().Recv().Type()
		if pointer, ok := typ.(*types.Pointer); ok {
			typ = pointer.Elem()
		}
		if named, ok := typ.(*types.Named); ok {
			return path + named.Obj().Name() + "." + object.Name()
		}
		return ""
	}
	if object.Parent() == object.Pkg().Scope() {
		return path + object.Name()
	}
	return ""
}
