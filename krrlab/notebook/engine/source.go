package engine

import (
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

// Source is a package that is not compiled into the program.
type Source struct {
	Path  string            // by which it is imported
	Files map[string][]byte // the Go files that make it up on this system, by their names in messages
	Go    string            // the version of the language, as go1.21
}

// importer makes packages known: compiled ones, and others from their source.
type importer struct{ *Engine }

func (i importer) Import(path string) (*types.Package, error) {
	if _, known := ixgo.LookupPackage(path); known || path == "unsafe" {
		return i.loader.Import(path)
	}
	return i.interpreted(path)
}

// interpreted makes known a package from its source, and those that it imports. It is executed before the next cell.
func (e *Engine) interpreted(path string) (*types.Package, error) {
	if u := e.sources[path]; u != nil {
		return u.pkg, nil
	}
	if e.Find == nil {
		return nil, &MissingError{Paths: []string{path}}
	}
	found, err := e.Find(path)
	if err != nil {
		return nil, err
	}
	if u := e.sources[found.Path]; u != nil {
		e.sources[path] = u
		return u.pkg, nil
	}
	src := &source{info: newInfo(), at: map[types.Object]ast.Node{}}
	// in the order of the compiler, which is that of initialization
	for _, name := range slices.Sorted(maps.Keys(found.Files)) {
		text := found.Files[name]
		f, err := parser.ParseFile(e.fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		keepDefers(f)
		src.files = append(src.files, f)
	}
	u := &unit{src: src, vars: map[string]reflect.Value{}, pkg: types.NewPackage(strings.Clone(found.Path),
		src.files[0].Name.Name)}
	first := e.checked(u.pkg, src, found.Go)
	for _, f := range src.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Body == nil && first == nil {
					first = types.Error{Fset: e.fset, Pos: d.Pos(), Msg: d.Name.Name + " is not written in Go"}
				}
				src.at[src.info.Defs[d.Name]] = d
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						src.at[src.info.Defs[s.Name]] = s
					}
				}
			}
		}
		methodValues(f, src.info)
	}
	if first != nil {
		return nil, fmt.Errorf("%s cannot be interpreted: %w", path, first)
	}
	e.sources[path], e.sources[found.Path], e.units[u.pkg] = u, u, u
	e.fresh = append(e.fresh, u)
	return u.pkg, nil
}

// prepare executes the packages that were found since the last cell. If one fails, all of them are forgotten.
func (e *Engine) prepare() error {
	for i, u := range e.fresh {
		if err := e.execute(u); err != nil {
			for _, v := range e.fresh[i:] {
				delete(e.units, v.pkg)
				maps.DeleteFunc(e.sources, func(_ string, w *unit) bool { return w == v })
			}
			e.fresh = nil
			return err
		}
	}
	e.fresh = nil
	return nil
}

func (e *Engine) execute(u *unit) (err error) {
	e.mu.Lock()
	if files, _ := u.src.part(nil, true); files == nil { // nothing to execute
		e.needs(u)
	} else if err = e.build(u); err == nil {
		defer func() { u.run = nil }()
	}
	e.mu.Unlock()
	if u.run != nil && err == nil {
		e.now.Store(&turn{goid: Goid()})
		_, err = u.run.RunFunc("init")
	}
	return err
}

// kept are the functions and types of interpreted packages that a unit needs, or one of the units that it is built
// with: a package is large, and of it is compiled what is used.
func (e *Engine) kept(u *unit, units map[*unit]bool) map[types.Object]bool {
	kept := map[types.Object]bool{}
	var object func(o types.Object)
	w := typeWalker{seen: map[types.Type]bool{}, named: func(n *types.Named) { object(n.Obj()) }}
	visit := func(v *unit, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if x, ok := n.(ast.Expr); ok {
				w.visit(v.src.info.TypeOf(x))
			}
			if id, ok := n.(*ast.Ident); ok {
				object(v.src.info.Uses[id])
			}
			return true
		})
	}
	object = func(o types.Object) {
		if f, ok := o.(*types.Func); ok {
			o = f.Origin()
		}
		if o == nil || kept[o] {
			return
		}
		v := e.units[o.Pkg()]
		if v == nil || v.src == nil || v.src.at[o] == nil {
			return
		}
		kept[o] = true
		visit(v, v.src.at[o])
		if n, ok := o.Type().(*types.Named); ok {
			for m := range n.Methods() {
				object(m)
			}
		} else if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
			t := f.Signature().Recv().Type()
			if p, ok := t.(*types.Pointer); ok {
				t = p.Elem()
			}
			object(t.(*types.Named).Obj())
		}
	}
	for v := range units {
		if v.src == nil || v.src.at != nil && v != u {
			continue
		}
		for _, f := range v.src.files {
			for _, d := range f.Decls {
				if v.src.at == nil || initial(d) {
					visit(v, d)
				}
			}
		}
	}
	return kept
}

// initial reports whether a declaration is executed when a package is initialized.
func initial(d ast.Decl) bool {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Recv == nil && d.Name.Name == "init"
	case *ast.GenDecl:
		return d.Tok == token.VAR
	}
	return false
}

// part returns what is kept of an interpreted package: variables, and what gives them their values at first.
func (s *source) part(kept map[types.Object]bool, first bool) ([]*ast.File, *types.Info) {
	info := *s.info
	info.FileVersions = maps.Clone(info.FileVersions)
	if !first {
		info.InitOrder = nil
	}
	var files []*ast.File
	for _, f := range s.files {
		part := *f
		part.Decls = nil
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if kept[s.info.Defs[d.Name]] || first && initial(d) {
					part.Decls = append(part.Decls, d)
				}
			case *ast.GenDecl:
				if initial(d) {
					part.Decls = append(part.Decls, d)
				}
			}
		}
		if part.Decls != nil {
			files = append(files, &part)
			info.FileVersions[&part] = info.FileVersions[f]
		}
	}
	if files == nil {
		return nil, nil // a package of which only types and constants are needed
	}
	return files, &info
}
