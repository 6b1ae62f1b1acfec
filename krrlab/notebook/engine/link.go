package engine

import (
	"fmt"
	"go/constant"
	"go/types"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/gopherdata/gophernotes/imports"
	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/types/typeutil"
)

// loader is ixgo's table of compiled packages and their types, with the types and variables of cells.
type loader struct {
	*ixgo.TypesLoader
	base   *ixgo.Context
	mu     sync.Mutex
	failed map[string]error        // what packages could not be loaded for
	known  typeutil.Map            // types of cells: reflect.Type by types.Type
	asked  []types.Type            // types that are not known yet
	cells  map[*byte]*ixgo.Package // variables of earlier units, by the string that is the path of the unit
}

// newLoader returns a loader in which every package is there from the beginning, empty. A type puts itself into its
// package when anything mentions it, so that packages can be loaded in any order.
func newLoader(base *ixgo.Context) *loader {
	l := &loader{TypesLoader: base.Loader.(*ixgo.TypesLoader), base: base, failed: map[string]error{},
		cells: map[*byte]*ixgo.Package{}}
	l.known.SetHasher(typeutil.MakeHasher())
	for path, name := range Packages() {
		if path != "unsafe" {
			_ = l.SetImport(path, types.NewPackage(path, name), nil)
		}
	}
	base.Loader, base.Importer = l, sourceImporter{l}
	return l
}

// load loads a package: what its table lists, or its source, and the source of what the table lacks. No other source
// is looked for.
func (l *loader) load(path string) (p *types.Package, err error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	p, _ = l.LookupPackage(path)
	table, known := ixgo.LookupPackage(path)
	if !known || p == nil {
		return nil, fmt.Errorf("package %s is not in this kernel", path)
	}
	if err := l.failed[path]; err != nil || p.Complete() {
		return p, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			err = fmt.Errorf("package %s cannot be imported: %w", path, err)
			l.failed[path] = err
		}
	}()
	if _, err := l.TypesLoader.Import(path); err != nil { // enters the table; the package is there, and not complete
		return nil, err
	}
	if table.Source != "" {
		if err := l.base.AddImportFile(path, p.Name()+".go", table.Source); err != nil {
			return nil, err
		}
		sp := l.base.SourcePackage(path)
		sp.Package, sp.Register = p, true
		_ = l.SetImport(path, p, nil)
		return p, sp.Load()
	}
	l.install(p, table)
	p.MarkComplete()
	if sp := l.base.SourcePackage(path + "@patch"); sp != nil {
		if err := sp.Load(); err != nil {
			return nil, err
		}
		for _, name := range sp.Package.Scope().Names() {
			p.Scope().Insert(sp.Package.Scope().Lookup(name))
		}
	}
	return p, nil
}

// install puts what a table lists into a package.
func (l *loader) install(p *types.Package, table *ixgo.Package) {
	for _, of := range []map[string]reflect.Type{table.Interfaces, table.NamedTypes} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			l.ToType(of[name])
		}
	}
	for name, rt := range table.AliasTypes {
		l.InsertAlias(p, name, rt)
	}
	for name, f := range table.Funcs {
		l.InsertFunc(p, name, f)
	}
	for name, v := range table.Vars {
		l.InsertVar(p, name, v.Elem())
	}
	for name, c := range table.TypedConsts {
		l.InsertTypedConst(p, name, c)
	}
	for name, c := range table.UntypedConsts {
		l.InsertUntypedConst(p, name, c)
	}
}

// sourceImporter imports what the source of a package imports, while the loader is held.
type sourceImporter struct{ *loader }

func (l sourceImporter) Import(path string) (*types.Package, error) { return l.load(path) }

// Import loads a compiled package.
func (l *loader) Import(path string) (*types.Package, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.load(path)
}

// LookupReflect returns the reflect.Type of a type that is known.
func (l *loader) LookupReflect(t types.Type) (reflect.Type, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rt, ok := l.known.At(t).(reflect.Type); ok {
		return rt, true
	}
	if rt, ok := l.TypesLoader.LookupReflect(t); ok {
		return rt, true
	}
	if _, ok := t.(*types.Named); ok {
		l.asked = append(l.asked, t)
	}
	return nil, false
}

// know makes known the types that were asked for, as an interpreter has made them.
func (l *loader) know(record *ixgo.TypesRecord) {
	l.mu.Lock()
	asked := slices.Clone(l.asked)
	l.mu.Unlock()
	for _, t := range asked {
		rt, _ := record.ToType(t) // asks
		l.mu.Lock()
		l.known.Set(t, rt)
		l.mu.Unlock()
	}
}

// Installed returns the table of a package.
func (l *loader) Installed(path string) (*ixgo.Package, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.cells[unsafe.StringData(path)]; ok {
		return p, true
	}
	return l.TypesLoader.Installed(path)
}

// registerAll enters the tables of package imports into ixgo's.
var registerAll = sync.OnceFunc(func() {
	for path, p := range imports.Packages {
		if _, ok := ixgo.LookupPackage(path); !ok {
			ixgo.RegisterPackageLazy(path, func() *ixgo.Package { return table(path, p) })
		}
	}
})

// table turns the table of a package into the form of ixgo.
func table(path string, p imports.Package) *ixgo.Package {
	t := &ixgo.Package{
		Name: string(p.Name), Path: path,
		Interfaces: map[string]reflect.Type{}, NamedTypes: map[string]reflect.Type{},
		AliasTypes: map[string]reflect.Type{},
		Vars:       map[string]reflect.Value{}, Funcs: map[string]reflect.Value{},
		TypedConsts: map[string]ixgo.TypedConst{}, UntypedConsts: map[string]ixgo.UntypedConst{},
	}
	for name, rt := range p.Types {
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

// plainSeq returns a function that gives an iterator as a plain function type instead of an iter.Seq of some type: by
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
	return reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{plain}, t.IsVariadic()),
		func(args []reflect.Value) []reflect.Value {
			call := f.Call
			if t.IsVariadic() {
				call = f.CallSlice
			}
			return []reflect.Value{call(args)[0].Convert(plain)}
		})
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
