package bindgen

import (
	"fmt"
	"slices"
	"strings"
)

// module is the path of the module whose packages are bound.
const module = "github.com/krrlab/lab"

// displayPath is the package that cells import as "display".
const displayPath = module + "/krrlab/notebook/display"

// Patterns name what the notebook binds: the packages of the laboratory, all of them but
// those Unbound, and what a researcher needs of gonum, plot and gota.
var Patterns = []string{
	module + "/krrlab/...", module + "/datasets/...", module + "/plots/...", module + "/experiments/...", module + "/theory/...",
	"gonum.org/v1/gonum/mat", "gonum.org/v1/gonum/stat", "gonum.org/v1/gonum/stat/distuv", "gonum.org/v1/gonum/floats",
	"gonum.org/v1/gonum/optimize",
	"gonum.org/v1/plot", "gonum.org/v1/plot/plotter", "gonum.org/v1/plot/vg", "gonum.org/v1/plot/vg/draw", "gonum.org/v1/plot/palette",
	"github.com/go-gota/gota/dataframe", "github.com/go-gota/gota/series",
}

// Unbound are the packages of the module, with those below them, that no cell has a use
// for; conformance suites, whose names end in test, are others.
var Unbound = []string{"krrlab/accel/gemm", "krrlab/accel/simd", "krrlab/cli", "krrlab/cmd", "krrlab/internal", "krrlab/notebook"}

// Skipped are the exported names that are not bound.
var Skipped = Skip{
	module + "/krrlab/accel.Use": "only a main chooses the BLAS of the process",
}

// Generate returns the files of krrlab/notebook/bindings, by name. dir is a folder of the
// module.
func Generate(dir string) (map[string][]byte, error) {
	paths, err := Paths(dir, Patterns...)
	if err != nil {
		return nil, err
	}
	ps, err := Load(dir, slices.DeleteFunc(paths, unbound)...) // what is unbound need not compile
	if err != nil {
		return nil, err
	}
	ix := NewIndex(ps)
	files := map[string][]byte{}
	left := map[string]bool{}
	for key := range Skipped {
		left[key] = true
	}
	var bad []string
	for _, p := range ps {
		if p.Path == displayPath {
			p.As = "display"
		}
		src, used, err := Source("bindings", p, Skipped)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		for _, key := range used {
			delete(left, key)
		}
		files["bind_"+Stem(p.name())+".go"] = src
		js, err := JSON(p.Docs(ix))
		if err != nil {
			return nil, err
		}
		files["docs/"+Stem(p.name())+".json"] = js
	}
	for key := range left {
		bad = append(bad, fmt.Sprintf("bindgen: %s is in the list of skipped names, but no exported name; take it out", key))
	}
	if len(bad) > 0 {
		slices.Sort(bad)
		return nil, fmt.Errorf("%s", strings.Join(bad, "\n"))
	}
	return files, nil
}

// unbound reports whether path is one of Unbound or below it, or a conformance suite.
func unbound(path string) bool {
	if path == displayPath {
		return false
	}
	if strings.HasPrefix(path, module+"/") && strings.HasSuffix(path, "test") {
		return true
	}
	return slices.ContainsFunc(Unbound, func(u string) bool {
		return path == module+"/"+u || strings.HasPrefix(path, module+"/"+u+"/")
	})
}
