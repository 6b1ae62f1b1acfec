package engine

import (
	"go/constant"
	"go/types"
	"math/big"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/gopherdata/gophernotes/imports"
	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/types/typeutil"
)

// loader is ixgo's table of compiled packages and their types, with the types and variables of cells.
type loader struct {
	ixgo.Loader
	mu    sync.Mutex
	known typeutil.Map            // types of cells: reflect.Type by types.Type
	asked []types.Type            // types that are not known yet
	cells map[*byte]*ixgo.Package // variables of earlier units, by the string that is the path of the unit
}

// LookupReflect returns the reflect.Type of a type that is known.
func (l *loader) LookupReflect(t types.Type) (reflect.Type, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rt, ok := l.known.At(t).(reflect.Type); ok {
		return rt, true
	}
	if rt, ok := l.Loader.LookupReflect(t); ok {
		return rt, true
	}
	if _, ok := t.(*types.Named); ok {
		l.asked = append(l.asked, t)
	}
	return nil, false
}

// Installed returns the table of a package.
func (l *loader) Installed(path string) (*ixgo.Package, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.cells[unsafe.StringData(path)]; ok {
		return p, true
	}
	return l.Loader.Installed(path)
}

// importer is the loader for go/types: what loads the source of a package imports by the loader itself.
type importer struct{ *Engine }

// Import makes a compiled package known, after those that its types are of.
func (i importer) Import(path string) (*types.Package, error) {
	i.loader.mu.Lock()
	defer i.loader.mu.Unlock()
	return i.base.Importer.Import(path)
}

var register sync.Once

// registerAll enters the tables of package imports into ixgo's.
func registerAll() {
	register.Do(func() {
		for path, p := range imports.Packages {
			if _, ok := ixgo.LookupPackage(path); !ok {
				ixgo.RegisterPackageLazy(path, func() *ixgo.Package { return table(path, p) })
			}
		}
	})
}

// table turns the table of a package into the form of ixgo.
func table(path string, p imports.Package) *ixgo.Package {
	t := &ixgo.Package{
		Name: string(p.Name), Path: path, Deps: map[string]string{},
		Interfaces: map[string]reflect.Type{}, NamedTypes: map[string]reflect.Type{}, AliasTypes: map[string]reflect.Type{},
		Vars: map[string]reflect.Value{}, Funcs: map[string]reflect.Value{},
		TypedConsts: map[string]ixgo.TypedConst{}, UntypedConsts: map[string]ixgo.UntypedConst{},
	}
	w := walker{own: path, deps: t.Deps, seen: map[reflect.Type]bool{}}
	for name, rt := range p.Types {
		w.visit(rt)
		switch {
		case rt.PkgPath() != path || rt.Name() != name:
			t.AliasTypes[name] = rt
		case rt.Kind() == reflect.Interface:
			t.Interfaces[name] = rt
		default:
			t.NamedTypes[name] = rt
		}
	}
	for name, v := range p.Binds {
		w.visit(v.Type())
		if lit, ok := p.Untypeds[name]; ok {
			kind, val := untyped(lit)
			t.UntypedConsts[name] = ixgo.UntypedConst{Typ: kind, Value: val}
			continue
		}
		switch {
		case v.CanAddr():
			t.Vars[name] = v.Addr()
		case v.Kind() == reflect.Func:
			t.Funcs[name] = plainSeq(v)
		default:
			t.TypedConsts[name] = ixgo.TypedConst{Typ: v.Type(), Value: constantOf(v)}
		}
	}
	return t
}

// plainSeq returns a function that gives an iterator as a plain function type in place of an iter.Seq of some type: by
// reflection that type is no instance of iter.Seq.
func plainSeq(f reflect.Value) reflect.Value {
	t := f.Type()
	if t.NumOut() != 1 || t.Out(0).PkgPath() != "iter" {
		return f
	}
	seq := t.Out(0)
	var in []reflect.Type
	for i := range t.NumIn() {
		in = append(in, t.In(i))
	}
	plain := reflect.FuncOf([]reflect.Type{seq.In(0)}, nil, false)
	return reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{plain}, t.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		call := f.Call
		if t.IsVariadic() {
			call = f.CallSlice
		}
		return []reflect.Value{call(args)[0].Convert(plain)}
	})
}

// walker finds the packages of the types that a package's table mentions.
type walker struct {
	own  string
	deps map[string]string
	seen map[reflect.Type]bool
}

func (w walker) visit(t reflect.Type) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	if path := t.PkgPath(); path != "" && path != w.own {
		if name, ok := Packages()[path]; ok {
			w.deps[path] = name
			return // its own table goes on
		}
	}
	switch t.Kind() {
	case reflect.Array, reflect.Chan, reflect.Pointer, reflect.Slice:
		w.visit(t.Elem())
	case reflect.Map:
		w.visit(t.Key())
		w.visit(t.Elem())
	case reflect.Func:
		for i := range t.NumIn() {
			w.visit(t.In(i))
		}
		for i := range t.NumOut() {
			w.visit(t.Out(i))
		}
	case reflect.Struct:
		for i := range t.NumField() {
			w.visit(t.Field(i).Type)
		}
	}
	if t.PkgPath() == "" && t.Kind() != reflect.Interface {
		return
	}
	for i := range t.NumMethod() {
		w.visit(t.Method(i).Type)
	}
	if t.Kind() != reflect.Interface {
		p := reflect.PointerTo(t)
		for i := range p.NumMethod() {
			w.visit(p.Method(i).Type)
		}
	}
}

// untyped reads an untyped constant: kind:value.
func untyped(lit string) (kind string, v constant.Value) {
	kind, text, _ := strings.Cut(lit, ":")
	number := func(s string) constant.Value {
		if r, ok := new(big.Rat).SetString(s); ok {
			return constant.Make(r)
		}
		return constant.MakeUnknown()
	}
	switch kind {
	case "bool":
		v = constant.MakeBool(text == "true")
	case "string":
		v = constant.MakeString(text)
	case "int", "rune":
		v = constant.ToInt(number(text))
	case "float":
		v = constant.ToFloat(number(text))
	case "complex":
		re, im, _ := strings.Cut(text, ":")
		v = constant.BinaryOp(number(re), 12, constant.MakeImag(number(im)))
	}
	return "untyped " + kind, v
}

// constantOf is the value of a typed constant.
func constantOf(v reflect.Value) constant.Value {
	switch {
	case v.CanInt():
		return constant.MakeInt64(v.Int())
	case v.CanUint():
		return constant.MakeUint64(v.Uint())
	case v.CanFloat():
		return constant.MakeFloat64(v.Float())
	case v.Kind() == reflect.Bool:
		return constant.MakeBool(v.Bool())
	case v.Kind() == reflect.String:
		return constant.MakeString(v.String())
	}
	return constant.MakeUnknown()
}
