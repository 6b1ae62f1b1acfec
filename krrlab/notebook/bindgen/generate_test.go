package bindgen

// This file generates the bindings. It is part of the tests because TestBindings compares or writes them, and no
// program needs the generator.

import (
	"bytes"
	"errors"
	"fmt"
	"go/types"
	"runtime"
	"slices"
	"strings"

	"github.com/cosmos72/gomacro/imports"
	"golang.org/x/tools/go/packages"
)

// displayPath is the path of the package that cells import as "display", as in gophernotes.
const displayPath = module + "/krrlab/notebook/display"

// Patterns lists the packages that the notebook binds: all packages of the module except those in Unbound, and a
// selection of packages of gonum, gonum/plot and gota that are useful for research.
var Patterns = []string{
	// work matches the packages of this module. The pattern ./... would need the go.mod files of more modules.
	"work",
	"gonum.org/v1/gonum/mat", "gonum.org/v1/gonum/stat", "gonum.org/v1/gonum/stat/distuv", "gonum.org/v1/gonum/floats",
	"gonum.org/v1/gonum/optimize",
	"gonum.org/v1/gonum/lapack", "gonum.org/v1/gonum/lapack/lapack64", "gonum.org/v1/gonum/blas",
	"gonum.org/v1/gonum/blas/blas64", "gonum.org/v1/gonum/blas/cblas128",
	"gonum.org/v1/gonum/graph", "gonum.org/v1/gonum/graph/simple", "gonum.org/v1/gonum/graph/path",
	"gonum.org/v1/gonum/graph/topo",
	"gonum.org/v1/gonum/graph/traverse", "gonum.org/v1/gonum/graph/network", "gonum.org/v1/gonum/graph/spectral",
	"gonum.org/v1/gonum/dsp/fourier", "gonum.org/v1/gonum/dsp/window", "gonum.org/v1/gonum/integrate",
	"gonum.org/v1/gonum/integrate/quad",
	"gonum.org/v1/gonum/interp", "gonum.org/v1/gonum/diff/fd",
	"gonum.org/v1/gonum/stat/combin", "gonum.org/v1/gonum/stat/distmat", "gonum.org/v1/gonum/stat/distmv",
	"gonum.org/v1/gonum/stat/sampleuv",
	"gonum.org/v1/gonum/stat/samplemv", "gonum.org/v1/gonum/spatial/kdtree", "gonum.org/v1/gonum/spatial/vptree",
	"gonum.org/v1/gonum/spatial/r1", "gonum.org/v1/gonum/spatial/r2", "gonum.org/v1/gonum/spatial/r3",
	"gonum.org/v1/plot", "gonum.org/v1/plot/plotter", "gonum.org/v1/plot/vg", "gonum.org/v1/plot/vg/draw",
	"gonum.org/v1/plot/palette", "gonum.org/v1/plot/palette/moreland", "gonum.org/v1/plot/plotutil",
	"gonum.org/v1/plot/vg/vgimg", "gonum.org/v1/plot/font", "gonum.org/v1/plot/text", "git.sr.ht/~sbinet/gg",
	"golang.org/x/image/font", "golang.org/x/image/font/sfnt", "golang.org/x/image/font/opentype",
	"golang.org/x/image/math/fixed", "golang.org/x/image/draw", "golang.org/x/image/math/f64",
	"gonum.org/v1/gonum/optimize/convex/lp", "gonum.org/v1/gonum/floats/scalar",
	"github.com/go-gota/gota/dataframe", "github.com/go-gota/gota/series",
}

// Unbound lists the packages of the module that are not useful in cells. Packages in their subfolders are excluded,
// too, except package display.
var Unbound = []string{"krrlab/accel/gemm", "krrlab/accel/simd", "krrlab/cli", "krrlab/cmd",
	"krrlab/base/atomicfile", "krrlab/internal", "krrlab/notebook", "krrlab/base/safe", "krrlab/base/suite", "notebooks",
	"plots/internal"}

// loadBound loads the packages of Patterns except those of Unbound. mode says what Load reads of each package. dir is a
// folder of the module.
func loadBound(dir string, mode packages.LoadMode) ([]*Package, error) {
	paths, err := Paths(dir, Patterns...)
	if err != nil {
		return nil, err
	}
	pkgs, err := Load(dir, mode, slices.DeleteFunc(paths, isUnbound)...) // packages of Unbound need not compile
	for _, pkg := range pkgs {
		if pkg.Path == displayPath {
			pkg.CellPath = "display"
		}
	}
	return pkgs, err
}

// Generate returns the Go files of krrlab/notebook/bindings, by name. dir is a folder of the module.
func Generate(dir string) (map[string][]byte, error) {
	pkgs, err := loadBound(dir, packages.LoadTypes)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	var failures []string
	for _, pkg := range pkgs {
		src, err := Source("bindings", pkg, func(obj types.Object) bool {
			// UseLibrary is excluded, because only a main package chooses the BLAS of the process.
			return pkg.Path+"."+obj.Name() != module+"/krrlab/accel.UseLibrary"
		})
		if err != nil {
			failures = append(failures, err.Error())
			continue
		}
		files["bind_"+Stem(pkg.importPath())+".go"] = src
	}
	if failures != nil {
		return nil, errors.New(strings.Join(failures, "\n"))
	}
	return files, nil
}

// isUnbound reports whether path is in Unbound or in a subfolder of such a package, and is not displayPath.
func isUnbound(path string) bool {
	if path == displayPath {
		return false
	}
	return slices.ContainsFunc(Unbound, func(unbound string) bool {
		return path == module+"/"+unbound || strings.HasPrefix(path, module+"/"+unbound+"/")
	})
}

// Paths returns the paths of the packages that match the patterns. The packages need not compile.
func Paths(dir string, patterns ...string) (paths []string, err error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName, Dir: dir}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("bindgen: %w", err)
	}
	for _, pkg := range loaded {
		paths = append(paths, pkg.PkgPath)
	}
	return paths, nil
}

// stdRelease is the release of Go whose standard library is bound, which is the release in go.mod.
const stdRelease = "go1.26"

// Std lists packages of the standard library. The interpreter's own table is that of Go 1.18; the bindings add the
// names and packages that are newer. None of them depends on the platform.
var Std = []string{
	"archive/tar", "archive/zip", "bufio", "bytes", "context", "crypto/rand", "crypto/subtle", "encoding",
	"encoding/base64",
	"encoding/binary", "encoding/csv", "encoding/hex", "encoding/json", "errors", "flag", "fmt", "go/ast", "go/types",
	"hash", "hash/crc32",
	"hash/fnv", "hash/maphash", "io", "io/fs", "log", "log/slog", "math", "math/big", "math/bits", "math/cmplx",
	"math/rand", "math/rand/v2",
	"net", "net/http", "net/http/httptest", "net/netip", "net/url", "os", "os/exec", "path", "path/filepath",
	"reflect", "regexp", "runtime",
	"runtime/debug", "sort", "strconv", "strings", "sync", "sync/atomic", "testing", "text/tabwriter", "text/template",
	"time", "unicode",
	"unicode/utf16", "unicode/utf8",
}

// StdFiles returns the files for the packages of Std. A file contains the names that are missing in the interpreter's
// own table, except generics, which the interpreter does not support. Under another release of Go, StdFiles returns
// nil, because the standard library differs.
func StdFiles(dir string) (map[string][]byte, error) {
	if release := runtime.Version(); release != stdRelease && !strings.HasPrefix(release, stdRelease+".") &&
		!strings.HasPrefix(release, stdRelease+"-") {
		return nil, nil
	}
	pkgs, err := Load(dir, packages.LoadTypes, Std...)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, pkg := range pkgs {
		isMissing := func(obj types.Object) bool { return !hasBinding(pkg.Path, obj.Name()) && unsupported(obj) == nil }
		if !slices.ContainsFunc(pkg.exportedObjects(), isMissing) {
			continue
		}
		src, err := Source("bindings", pkg, isMissing)
		if err != nil {
			return nil, err
		}
		// Generated code replaces the interpreter's own table of a package. These files must extend it.
		assign := fmt.Sprintf("imports.Packages[%q] = imports.Package{", pkg.Path)
		merge := fmt.Sprintf("merge(%q, imports.PackageUnderlying{", pkg.Path)
		src = bytes.Replace(src, []byte(assign), []byte(merge), 1)
		files["bind_std_"+Stem(pkg.Path)+".go"] = bytes.Replace(src, []byte("\n\t}\n}\n"), []byte("\n\t})\n}\n"), 1)
	}
	return files, nil
}

// hasBinding reports whether the interpreter's own table contains a name.
func hasBinding(path, name string) bool {
	table, ok := imports.Packages[path]
	if !ok {
		return false
	}
	_, isType := table.Types[name]
	return isType || table.Binds[name].IsValid()
}
