package engine

import (
	"go/token"
	"go/types"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goplus/ixgo"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestImportOrder imports all packages in several orders, each time into a new engine. Each package must be complete
// and the same in all orders, and none may be loaded from the source of Go.
func TestImportOrder(t *testing.T) {
	paths := slices.Sorted(maps.Keys(Packages()))
	reference := map[string]string{}
	orders := uint64(6) // number of random orders, each with its own seed
	if suite.Small() {
		orders = 2
	}
	for seed := range orders {
		e := New(nil)
		for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(paths)) {
			pkg, err := e.loader.Import(paths[i])
			if err != nil || !pkg.Complete() || pkg.Name() != Packages()[paths[i]] && paths[i] != "unsafe" {
				t.Errorf("seed %d: %s: %v, %v", seed, paths[i], pkg, err)
			}
		}
		for _, path := range paths {
			pkg, _ := e.loader.Import(path)
			text := listNames(pkg)
			if seed == 0 {
				reference[path] = text
			} else if text != reference[path] {
				t.Errorf("seed %d: %s has other names or types:%s", seed, path, firstDifference(reference[path], text))
			}
			registered, _ := ixgo.LookupPackage(path)
			if registered == nil || path == "unsafe" {
				continue
			}
			for name, reflectType := range registered.NamedTypes {
				if got, ok := e.loader.LookupReflect(pkg.Scope().Lookup(name).Type()); !ok || got != reflectType {
					t.Errorf("seed %d: %s.%s is %v, want %v", seed, path, name, got, reflectType)
				}
			}
		}
		// The field Dir of a package is set only if ixgo loaded the package from source. The field pkgs is not
		// exported.
		for packages := reflect.ValueOf(e.loader.base).Elem().FieldByName("pkgs").MapRange(); packages.Next(); {
			testkit.Equal(t, packages.Value().Elem().FieldByName("Dir").String(), "", seed, packages.Key())
		}
	}
}

// firstDifference returns the first pair of lines in which two different texts differ, or a note if one text begins
// with the other.
func firstDifference(a, b string) (difference string) {
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(linesA), len(linesB)) {
		if linesA[i] != linesB[i] {
			return "\n" + linesA[i] + "\n" + linesB[i]
		}
	}
	return " one text begins with the other"
}

// listNames lists the names of a package that cells can use.
func listNames(pkg *types.Package) string {
	var list strings.Builder
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !token.IsExported(name) || !token.IsIdentifier(name) {
			continue
		}
		if _, ok := object.(*types.TypeName); !ok {
			list.WriteString(ObjectString(object) + "\n")
		} else {
			underlying := object.Type().Underlying()
			if reflect.TypeOf(underlying) != reflect.TypeFor[*types.Struct]() {
				list.WriteString(TypeString(underlying))
			}
			list.WriteString(" is type " + name + "\n")
			for _, member := range MemberNames(object.Type()) {
				if token.IsExported(member) {
					list.WriteString("\t" + ObjectString(LookupMember(object.Type(), member)) + "\n")
				}
			}
		}
	}
	return list.String()
}

// TestImportErrors imports a package that does not exist and one whose table has a constant of an unknown type. The
// error must name the package, and other packages must remain usable.
func TestImportErrors(t *testing.T) {
	e, run := openEngine(t)
	testkit.Fails(t, testkit.ErrOf(e.loader.Import("go/nowhere")), "package go/nowhere is not in this kernel")
	ixgo.RegisterPackage(&ixgo.Package{Name: "broken", Path: "broken",
		UntypedConsts: map[string]ixgo.UntypedConst{"C": {Typ: "none.such"}}})
	defer delete(Packages(), "broken")
	Packages()["broken"] = "broken"
	_ = e.loader.SetImport("broken", types.NewPackage("broken", "broken"), nil)
	for range 2 { // the failed import must fail again in the same way
		testkit.Contains(t, run("import \"broken\""), "package broken cannot be imported: ")
	}
	testkit.Equal(t, run("import \"strings\"\nstrings.ToUpper(\"a\")"), "→A")
}
