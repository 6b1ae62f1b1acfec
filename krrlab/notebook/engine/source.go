package engine

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goplus/ixgo"
)

// Source is the source of a package that is not compiled into the program.
type Source struct {
	Path      string            // import path
	Files     map[string][]byte // contents of the Go files for this system, by the file names that appear in messages
	GoVersion string            // language version, for example go1.21
	// Embedded has the contents of the files that directives //go:embed name, by their paths in the package.
	Embedded map[string][]byte
}

// importer imports compiled packages, and all others from their source.
type importer struct{ *Engine }

// DisplayPath is the import path of the package that cells can also import as "display".
const DisplayPath = "github.com/krrlab/lab/krrlab/notebook/display"

// Import returns the package that cells import by a path.
func (i importer) Import(path string) (*types.Package, error) {
	if path == DisplayPath {
		path = "display"
	}
	if _, isCompiled := ixgo.LookupPackage(path); isCompiled || path == "unsafe" {
		return i.loader.Import(path)
	}
	return i.importSource(path)
}

// sourcePrefix begins the paths of the types.Packages of interpreted packages. A package can also be part of this
// program without being importable, as gonum's internal/set is. ixgo recognizes interpreted types by the paths of their
// packages and would otherwise look for the code of the compiled types, too.
const sourcePrefix = "source:"

// ImportPath returns the path by which cells import a package.
func ImportPath(pkg *types.Package) string { return strings.TrimPrefix(pkg.Path(), sourcePrefix) }

// importSource returns a package after finding its source and type-checking it, including its imports. The package is
// initialized before the next cell runs.
func (e *Engine) importSource(path string) (*types.Package, error) {
	if pkgUnit := e.sourceUnits[path]; pkgUnit != nil {
		return pkgUnit.pkg, nil
	}
	if e.FindSource == nil {
		return nil, &MissingPackagesError{Paths: []string{path}}
	}
	foundSource, err := e.FindSource(path)
	if err != nil {
		return nil, err
	}
	if pkgUnit := e.sourceUnits[foundSource.Path]; pkgUnit != nil {
		e.sourceUnits[path] = pkgUnit
		return pkgUnit.pkg, nil
	}
	src := &syntax{info: newInfo(), decls: map[types.Object]ast.Node{}}
	// The order of files determines the order of initialization; the compiler sorts them by name.
	for _, name := range slices.Sorted(maps.Keys(foundSource.Files)) {
		text := foundSource.Files[name]
		mode := parser.SkipObjectResolution
		hasEmbed := bytes.Contains(text, []byte("//go:embed"))
		if hasEmbed {
			mode |= parser.ParseComments
		}
		file, err := parser.ParseFile(e.fset, name, text, mode)
		if err != nil {
			return nil, err
		}
		if hasEmbed {
			if err := embedFiles(e.fset, file, foundSource.Embedded); err != nil {
				return nil, fmt.Errorf("%s cannot be interpreted: %w", path, err)
			}
		}
		ensureDefers(file)
		src.files = append(src.files, file)
	}
	pkgUnit := &unit{src: src, vars: map[string]reflect.Value{}, pkg: types.NewPackage(sourcePrefix+foundSource.Path,
		src.files[0].Name.Name)}
	err = e.typeCheck(pkgUnit.pkg, src, foundSource.GoVersion)
	if file := src.indexDeclarations(); file != nil && err == nil {
		err = types.Error{Fset: e.fset, Pos: file.Pos(), Msg: file.Name.Name + " is not written in Go"}
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be interpreted: %w", path, err)
	}
	for _, file := range src.files {
		bindMethodValues(file, src.info)
	}
	e.sourceUnits[path], e.sourceUnits[foundSource.Path], e.units[pkgUnit.pkg] = pkgUnit, pkgUnit, pkgUnit
	e.uninitialized = append(e.uninitialized, pkgUnit)
	return pkgUnit.pkg, nil
}

// indexDeclarations adds the functions, methods and types of a package to s.decls. It returns the first function
// without a body, or nil if there is none.
func (s *syntax) indexDeclarations() (bodyless *ast.FuncDecl) {
	for _, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				s.decls[s.info.Defs[n.Name]] = n
				if n.Body == nil && bodyless == nil {
					bodyless = n
				}
				return false
			case *ast.TypeSpec:
				s.decls[s.info.Defs[n.Name]] = n
			}
			_, isValue := n.(*ast.ValueSpec) // may contain functions that declare types
			return !isValue
		})
	}
	return bodyless
}

// initializePackages initializes the packages that were imported since the last cell. If the initialization of a
// package fails, this package and those after it are removed.
func (e *Engine) initializePackages() error {
	for i, u := range e.uninitialized {
		if err := e.initialize(u); err != nil {
			for _, removed := range e.uninitialized[i:] {
				delete(e.units, removed.pkg)
				maps.DeleteFunc(e.sourceUnits, func(_ string, u *unit) bool { return u == removed })
			}
			e.uninitialized = nil
			return err
		}
	}
	e.uninitialized = nil
	return nil
}

// initialize builds an interpreted package and executes its initialization.
func (e *Engine) initialize(u *unit) (err error) {
	e.mu.Lock()
	if files, _ := u.src.initializedPart(nil); files == nil { // no variables and no init functions
		e.findDependencies(u)
	} else if err = e.build(u); err == nil {
		defer func() { u.interp = nil }()
	}
	e.mu.Unlock()
	if u.interp != nil && err == nil {
		e.current.Store(&execution{goid: GoroutineID()})
		_, err = u.interp.RunFunc("init")
	}
	return err
}

// usedObjects returns the functions and types of interpreted packages that the given units (pieces of cells, or
// interpreted packages) need. Packages are large, so only these objects are compiled. u is the unit to build: if it is
// an interpreted package, its initialization is included.
func (e *Engine) usedObjects(u *unit, units set[*unit]) set[types.Object] {
	used := set[types.Object]{}
	var addObject func(obj types.Object)
	walker := typeWalker{onNamed: func(node *types.Named) { addObject(node.Obj()) }}
	visit := func(owner *unit, node ast.Node) {
		ast.Inspect(node, func(node ast.Node) bool {
			if expr, ok := node.(ast.Expr); ok {
				walker.visit(owner.src.info.TypeOf(expr))
			}
			if ident, ok := node.(*ast.Ident); ok {
				addObject(owner.src.info.Uses[ident])
			}
			return true
		})
	}
	addObject = func(obj types.Object) {
		if fn, ok := obj.(*types.Func); ok {
			obj = fn.Origin()
		}
		if obj == nil || used[obj] {
			return
		}
		owner := e.units[obj.Pkg()]
		if owner == nil || owner.src == nil || owner.src.decls[obj] == nil {
			return
		}
		used[obj] = true
		visit(owner, owner.src.decls[obj])
		if node, ok := obj.Type().(*types.Named); ok {
			for m := range node.Methods() {
				addObject(m)
			}
		} else if fn, ok := obj.(*types.Func); ok && fn.Signature().Recv() != nil {
			walker.visit(fn.Signature().Recv().Type())
		}
	}
	for owner := range units {
		if owner.src == nil || owner.src.decls != nil && owner != u {
			continue
		}
		for _, fn := range owner.src.files {
			for _, d := range fn.Decls {
				if owner.src.decls == nil || isInitialization(d) {
					visit(owner, d)
				}
			}
		}
	}
	return used
}

// isInitialization reports whether a declaration contributes to the initialization of its package: a variable
// declaration or an init function.
func isInitialization(d ast.Decl) bool {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Recv == nil && d.Name.Name == "init"
	case *ast.GenDecl:
		return d.Tok == token.VAR
	}
	return false
}

// usedPart returns the part of an interpreted package that is compiled with a unit that uses it: its variables, without
// initial values, and the used functions. It returns nil if only types and constants are needed.
func (s *syntax) usedPart(used set[types.Object]) ([]*ast.File, *types.Info) {
	files, info := s.filterDecls(func(d ast.Decl) bool {
		fn, isFunc := d.(*ast.FuncDecl)
		return isFunc && used[s.info.Defs[fn.Name]] || isInitialization(d) && !isFunc
	})
	if info != nil {
		info.InitOrder = nil
	}
	return files, info
}

// initializedPart is like usedPart, but includes the initial values of variables and the init functions.
func (s *syntax) initializedPart(used set[types.Object]) ([]*ast.File, *types.Info) {
	return s.filterDecls(func(d ast.Decl) bool {
		fn, isFunc := d.(*ast.FuncDecl)
		return isFunc && used[s.info.Defs[fn.Name]] || isInitialization(d)
	})
}

// filterDecls returns the files of a package with only the declarations for which keep is true, and a copy of their
// type information. It returns nil if there are none.
func (s *syntax) filterDecls(keep func(ast.Decl) bool) ([]*ast.File, *types.Info) {
	info := *s.info
	info.FileVersions = maps.Clone(info.FileVersions)
	var files []*ast.File
	for _, file := range s.files {
		reduced := *file
		reduced.Decls = nil
		for _, decl := range file.Decls {
			if keep(decl) {
				reduced.Decls = append(reduced.Decls, decl)
			}
		}
		if reduced.Decls != nil {
			files = append(files, &reduced)
			info.FileVersions[&reduced] = info.FileVersions[file]
		}
	}
	if files == nil {
		return nil, nil
	}
	return files, &info
}
