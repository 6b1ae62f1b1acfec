package bindgen

import (
	"bytes"
	"flag"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

var update = flag.Bool("update", false, "write krrlab/notebook/bindings")

// updateCommand updates the bindings.
const updateCommand = "go generate ./krrlab/notebook/bindgen"

// TestBindings checks that the files in krrlab/notebook/bindings are equal to the generated ones. With -update, it
// writes them.
func TestBindings(t *testing.T) {
	files := testkit.Must(Generate("."))
	stdFiles := testkit.Must(StdFiles("."))
	maps.Copy(files, stdFiles)
	dir := filepath.Join("..", "bindings")
	existing := map[string]bool{}
	names, _ := filepath.Glob(filepath.Join(dir, "bind_*.go"))
	for _, path := range names {
		existing[filepath.Base(path)] = true
	}
	for name, want := range files {
		delete(existing, name)
		path := filepath.Join(dir, name)
		got, err := os.ReadFile(path)
		if err == nil && bytes.Equal(got, want) {
			continue
		}
		if !*update {
			t.Errorf("%s is not up to date with the packages it binds; run: %s", name, updateCommand)
			continue
		}
		testkit.OK(t, os.WriteFile(path, want, 0o644))
	}
	for name := range existing {
		if stdFiles == nil && strings.HasPrefix(name, "bind_std_") { // another release of Go cannot check these files
			continue
		}
		if !*update {
			t.Errorf("%s binds a package that no longer exists; run: %s", name, updateCommand)
		} else if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// loadPackage writes a module with one package and loads the package.
func loadPackage(t *testing.T, src string) *Package {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "a.go": "package m\n\n" + src} {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	pkgs := testkit.Must(Load(dir, packages.LoadSyntax, "."))
	return pkgs[0]
}

// TestUnsupportedObjects checks that Source returns an error for each kind of object that the interpreter does not
// support.
func TestUnsupportedObjects(t *testing.T) {
	for _, test := range []struct{ src, wantError string }{
		{"func F[T any](x T) {}", "m.F: a generic function"},
		{"type T[E any] struct{}", "m.T: a generic type"},
		{"type C interface{ ~int | ~string }", "m.C: a constraint"},
	} {
		pkg := loadPackage(t, test.src)
		_, err := Source("b", pkg, func(types.Object) bool { return true })
		testkit.Fails(t, err, test.wantError)
	}
}

// TestGeneratedSource checks the bindings and the documentation of a small package with every kind of exported object.
func TestGeneratedSource(t *testing.T) {
	pkg := loadPackage(t, `
// Pi is a number.
const Pi = 3.25

// N is another.
const N int8 = 3

// V holds it.
var V int

// E is embedded.
type E struct{}

// M does a thing.
func (E) M() {}

// S embeds.
type S struct {
	E
	// F is a field.
	F float64
}

// I is implemented by cells.
type I interface {
	// Eval evaluates.
	Eval(x []float64, more ...int) (float64, error)
}

func hidden() {}

func Excluded() {}
`)
	src := testkit.Must(Source("b", pkg, func(obj types.Object) bool { return obj.Name() != "Excluded" }))
	for _, want := range []string{
		`"Pi": "float:13/4"`, `"N":  r.ValueOf(m.N)`, `r.ValueOf(&m.V).Elem()`, `"I": r.TypeOf((*m.I)(nil)).Elem()`,
	} {
		if !strings.Contains(string(src), want) {
			t.Errorf("no %s in\n%s", want, src)
		}
	}
	if strings.Contains(string(src), "hidden") || strings.Contains(string(src), "Excluded") {
		t.Error("an unexported or excluded name is bound")
	}
	docs := pkg.Docs(NewIndex([]*Package{pkg}))
	for key, want := range map[string]string{
		"Pi": "Pi is a number.", "N": "N is another.", "V": "V holds it.", "S.M": "M does a thing.",
		"S.F": "F is a field.", "I.Eval": "Eval evaluates.",
	} {
		testkit.Equal(t, docs[key].Doc, want, key)
	}
	testkit.Contains(t, docs["S"].Decl, "// F is a field.")
}
