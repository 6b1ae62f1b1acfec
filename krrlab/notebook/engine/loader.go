package engine

import (
	"fmt"
	"go/constant"
	"go/token"
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

// loader extends ixgo's table of compiled packages and their types with the types and variables of cells.
type loader struct {
	*ixgo.TypesLoader
	base         *ixgo.Context           // loads packages from source
	mu           sync.Mutex              // guards the fields below
	loadErrors   map[string]error        // errors of packages that could not be loaded, by path
	cellTypes    typeutil.Map            // reflect.Type of each type of a cell, by types.Type
	pendingTypes []types.Type            // named types that were not known when they were looked up
	cellPackages map[*byte]*ixgo.Package // packages of the variables of earlier cells; see Installed
}

// newLoader returns a loader that contains every importable package. The packages are empty at first: a compiled type
// enters its package when it is first mentioned. Therefore packages can be loaded in any order.
func newLoader() *loader {
	base := ixgo.NewContext(contextMode)
	l := &loader{TypesLoader: base.Loader.(*ixgo.TypesLoader), base: base, loadErrors: map[string]error{},
		cellPackages: map[*byte]*ixgo.Package{}}
	l.cellTypes.SetHasher(typeutil.MakeHasher())
	for path, name := range Packages() {
		if path != "unsafe" {
			_ = l.SetImport(path, types.NewPackage(path, name), nil)
		}
	}
	base.Loader, base.Importer = l, sourceImporter{l}
	return l
}

// load returns a package with everything it exports: the contents of its compiled table, its source, or the table and a
// patch in source form that supplies the missing objects. load does not look for source files on disk. An error is
// remembered and returned again on later calls. The caller holds l.mu.
func (l *loader) load(path string) (pkg *types.Package, err error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	pkg, _ = l.LookupPackage(path)
	table, compiled := ixgo.LookupPackage(path)
	if !compiled || pkg == nil {
		return nil, fmt.Errorf("package %s is not in this kernel", path)
	}
	if err := l.loadErrors[path]; err != nil || pkg.Complete() {
		return pkg, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			err = fmt.Errorf("package %s cannot be imported: %w", path, err)
			l.loadErrors[path] = err
		}
	}()
	if _, err := l.TypesLoader.Import(path); err != nil { // registers the table; the package stays incomplete
		return nil, err
	}
	if table.Source != "" {
		if err := l.base.AddImportFile(path, pkg.Name()+".go", table.Source); err != nil {
			return nil, err
		}
		source := l.base.SourcePackage(path)
		source.Package, source.Register = pkg, true
		_ = l.SetImport(path, pkg, nil)
		return pkg, source.Load()
	}
	l.addTable(pkg, table)
	pkg.MarkComplete()
	if patch := l.base.SourcePackage(path + "@patch"); patch != nil {
		if err := patch.Load(); err != nil {
			return nil, err
		}
		for _, name := range patch.Package.Scope().Names() {
			pkg.Scope().Insert(patch.Package.Scope().Lookup(name))
		}
	}
	return pkg, nil
}

// addTable adds the objects of a compiled table to a package.
func (l *loader) addTable(pkg *types.Package, table *ixgo.Package) {
	for _, typeTable := range []map[string]reflect.Type{table.Interfaces, table.NamedTypes} {
		for _, name := range slices.Sorted(maps.Keys(typeTable)) {
			l.ToType(typeTable[name])
		}
	}
	for name, reflectType := range table.AliasTypes {
		l.InsertAlias(pkg, name, reflectType)
	}
	for name, f := range table.Funcs {
		l.InsertFunc(pkg, name, f)
	}
	for name, v := range table.Vars {
		l.InsertVar(pkg, name, v.Elem())
	}
	for name, c := range table.TypedConsts {
		l.InsertTypedConst(pkg, name, c)
	}
	for name, c := range table.UntypedConsts {
		l.InsertUntypedConst(pkg, name, c)
	}
}

// sourceImporter resolves the imports of a package that is loaded from source, while l.mu is held.
type sourceImporter struct{ *loader }

func (l sourceImporter) Import(path string) (*types.Package, error) { return l.load(path) }

// Import returns a package that is compiled into the program.
func (l *loader) Import(path string) (*types.Package, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.load(path)
}

// LookupReflect returns the reflect.Type of a type, if it is known. An unknown named type is added to l.pendingTypes.
func (l *loader) LookupReflect(t types.Type) (reflect.Type, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reflectType, ok := l.cellTypes.At(t).(reflect.Type); ok {
		return reflectType, true
	}
	if reflectType, ok := l.TypesLoader.LookupReflect(t); ok {
		return reflectType, true
	}
	if _, ok := t.(*types.Named); ok {
		l.pendingTypes = append(l.pendingTypes, t)
	}
	return nil, false
}

// recordTypes stores the reflect.Type that an interpreter created for each pending type. It leaves the types in
// l.pendingTypes, which bindEarlierVariables empties before the next unit is built.
func (l *loader) recordTypes(record *ixgo.TypesRecord) {
	l.mu.Lock()
	pending := slices.Clone(l.pendingTypes)
	l.mu.Unlock()
	for _, t := range pending {
		reflectType, _ := record.ToType(t) // calls LookupReflect, so l.mu must be free
		l.mu.Lock()
		l.cellTypes.Set(t, reflectType)
		l.mu.Unlock()
	}
}

// Installed returns the table of a compiled package, or the variables of an earlier cell if path is the path of that
// cell. It replaces the method of the embedded loader, which ixgo calls. The paths of different cells have equal texts.
// l.cellPackages therefore identifies a cell by the address of the bytes of its path.
func (l *loader) Installed(path string) (*ixgo.Package, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pkg, ok := l.cellPackages[unsafe.StringData(path)]; ok {
		return pkg, true
	}
	return l.TypesLoader.Installed(path)
}

// registerAll adds the tables of package imports to those of ixgo.
var registerAll = sync.OnceFunc(func() {
	for path, pkg := range imports.Packages {
		if _, ok := ixgo.LookupPackage(path); !ok {
			ixgo.RegisterPackageLazy(path, func() *ixgo.Package { return convertTable(path, pkg) })
		}
	}
})

// convertTable converts a table of package imports to the form that ixgo uses.
func convertTable(path string, table imports.Package) *ixgo.Package {
	converted := &ixgo.Package{
		Name: string(table.Name), Path: path,
		Interfaces: map[string]reflect.Type{}, NamedTypes: map[string]reflect.Type{},
		AliasTypes: map[string]reflect.Type{},
		Vars:       map[string]reflect.Value{}, Funcs: map[string]reflect.Value{},
		TypedConsts: map[string]ixgo.TypedConst{}, UntypedConsts: map[string]ixgo.UntypedConst{},
	}
	for name, reflectType := range table.Types {
		switch {
		case reflectType.PkgPath() != path || reflectType.Name() != name:
			converted.AliasTypes[name] = reflectType
		case reflectType.Kind() == reflect.Interface:
			converted.Interfaces[name] = reflectType
		default:
			converted.NamedTypes[name] = reflectType
		}
	}
	for name, value := range table.Binds {
		if lit, ok := table.Untypeds[name]; ok {
			kind, val := parseUntyped(lit)
			converted.UntypedConsts[name] = ixgo.UntypedConst{Typ: kind, Value: val}
			continue
		}
		switch {
		case value.CanAddr():
			converted.Vars[name] = value.Addr()
		case value.Kind() == reflect.Func:
			converted.Funcs[name] = withPlainIterator(value)
		default:
			converted.TypedConsts[name] = ixgo.TypedConst{Typ: value.Type(), Value: constantOf(value)}
		}
	}
	return converted
}

// withPlainIterator wraps a function that returns an iterator of type iter.Seq[T], so that its result has the plain
// function type func(yield func(T) bool). Through reflection, the type is not recognized as an instance of iter.Seq.
func withPlainIterator(f reflect.Value) reflect.Value {
	funcType := f.Type()
	if funcType.NumOut() != 1 || funcType.Out(0).PkgPath() != "iter" {
		return f
	}
	seqType := funcType.Out(0)
	var paramTypes []reflect.Type
	for i := range funcType.NumIn() {
		paramTypes = append(paramTypes, funcType.In(i))
	}
	plainType := reflect.FuncOf([]reflect.Type{seqType.In(0)}, nil, false)
	return reflect.MakeFunc(reflect.FuncOf(paramTypes, []reflect.Type{plainType}, funcType.IsVariadic()),
		func(args []reflect.Value) []reflect.Value {
			call := f.Call
			if funcType.IsVariadic() {
				call = f.CallSlice
			}
			return []reflect.Value{call(args)[0].Convert(plainType)}
		})
}

// parseUntyped parses an untyped constant of the form kind:value, or complex:real:imaginary. It returns its type, such
// as "untyped int". The value is nil for an unknown kind, and constant.Unknown for a malformed number.
func parseUntyped(literal string) (kind string, value constant.Value) {
	kind, text, _ := strings.Cut(literal, ":")
	number := func(s string) constant.Value {
		if r, ok := new(big.Rat).SetString(s); ok {
			return constant.Make(r)
		}
		return constant.MakeUnknown()
	}
	switch kind {
	case "bool":
		value = constant.MakeBool(text == "true")
	case "string":
		value = constant.MakeString(text)
	case "int", "rune":
		value = constant.ToInt(number(text))
	case "float":
		value = constant.ToFloat(number(text))
	case "complex":
		re, im, _ := strings.Cut(text, ":")
		value = constant.BinaryOp(number(re), token.ADD, constant.MakeImag(number(im)))
	}
	return "untyped " + kind, value
}

// constantOf returns the value of a typed constant, or constant.Unknown for a type without constants.
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
