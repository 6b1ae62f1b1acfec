package lint

import (
	"fmt"
	"strings"
)

// stages is the floor from which on numbers are shown. Below it nothing prints, draws, or knows of a
// process.
const stages = 4

// floors lists every package of the module by its path in it. Add new ones here.
var floors = map[string]int{
	"krrlab/accel":               0,
	"krrlab/accel/gemm":          0,
	"krrlab/accel/simd":          0,
	"krrlab/comm":                0,
	"krrlab/comm/commtest":       0,
	"krrlab/internal/atomicfile": 0,
	"krrlab/internal/enum":       0,
	"krrlab/internal/group":      0,
	"krrlab/internal/hostile":    0,
	"krrlab/internal/npy":        0,
	"krrlab/internal/outward":    0,
	"krrlab/internal/plural":     0,
	"krrlab/internal/race":       0,
	"krrlab/internal/buffer":     0,
	"krrlab/internal/dl":         0,
	"krrlab/points":              0,
	"krrlab/notebook/bindgen":    0,
	"krrlab/notebook/zmtp":       0,
	"krrlab/rng":                 0,
	"plots":                      0,

	"datasets":                   1,
	"krrlab/estimate":            1,
	"krrlab/internal/checkpoint": 1,
	"krrlab/internal/testkit":    1,
	"krrlab/kernel":              1,
	"krrlab/sketch":              1,

	"krrlab/feature":     2,
	"krrlab/gram":        2,
	"krrlab/lanczos":     2,
	"krrlab/lowrank":     2,
	"krrlab/pcg":         2,
	"krrlab/pcg/pcgtest": 2,
	"krrlab/precond":     2,
	"krrlab/weighted":    2,

	"krrlab/adapt":               3,
	"krrlab/baseline":            3,
	"krrlab/bound":               3,
	"krrlab/direct":              3,
	"krrlab/interval":            3,
	"krrlab/loo":                 3,
	"krrlab/model":               3,
	"krrlab/multilevel":          3,
	"krrlab/precond/precondtest": 3,
	"krrlab/statdim":             3,
	"krrlab/lambdap":             3,

	"krrlab/notebook/display": stages,
	"krrlab/notebook/jupyter": stages,
	"krrlab/stage":            stages,

	"krrlab/plan":    5,
	"krrlab/race":    5,
	"krrlab/tune":    5,
	"krrlab/results": 5,
	"krrlab/verify":  5,

	"krrlab": 6,

	"experiments":   7,
	"theory":        7,
	"krrlab/remote": 7,

	"krrlab/notebook/engine":  7,
	"krrlab/notebook/modules": 7,
	"krrlab/notebook/native":  7,

	"krrlab/cli":               8,
	"krrlab/internal/mutants":  8,
	"krrlab/notebook":          8,
	"krrlab/notebook/bindings": 8,
	"krrlab/notebook/golang":   8,

	"krrlab/cmd/krrlab":    9,
	"krrlab/cmd/mutants":   9,
	"krrlab/internal/lint": 9,
	"notebooks":            9,
}

// allowed lists the imports within one floor, with the reason for each.
var allowed = map[[2]string]string{
	{"krrlab/accel", "krrlab/accel/gemm"}:                  "the BLAS of a machine without OpenBLAS",
	{"krrlab/accel", "krrlab/internal/dl"}:                 "OpenBLAS is a shared library",
	{"krrlab/comm", "krrlab/internal/dl"}:                  "MPI is a shared library",
	{"krrlab/points", "krrlab/internal/buffer"}:            "its loops keep what they work in",
	{"krrlab/points", "krrlab/accel"}:                      "products of many points run on the pool of workers",
	{"krrlab/points", "krrlab/accel/gemm"}:                 "products of bytes are no BLAS routine",
	{"krrlab/comm", "krrlab/accel"}:                        "a rank knows how many threads it has",
	{"krrlab/comm/commtest", "krrlab/comm"}:                "the conformance suite of comm's interface",
	{"krrlab/cli", "krrlab/notebook"}:                      "krrlab kernel and krrlab notebook are commands",
	{"krrlab/notebook", "krrlab/notebook/golang"}:          "the kernel is the protocol around the interpreter",
	{"krrlab/notebook/golang", "krrlab/notebook/bindings"}: "the interpreter knows what cells may import",
	{"krrlab/pcg/pcgtest", "krrlab/pcg"}:                   "the conformance suite of pcg's interfaces",
	{"krrlab/interval", "krrlab/model"}:                    "it is about a model's predictions",
	{"krrlab/interval", "krrlab/loo"}:                      "jackknife+ leaves one out",
	{"krrlab/bound", "krrlab/model"}:                       "a model keeps the bounds of its answer",
	{"krrlab/results", "krrlab/plan"}:                      "a solution has the plan it came of",
	{"krrlab/results", "krrlab/tune"}:                      "a solution has the tuning it came of",
}

// gotaUsers are the only packages that know of data frames; a notebook shows them.
var gotaUsers = map[string]bool{"datasets": true, "krrlab": true, "experiments": true, "krrlab/notebook/bindings": true, "krrlab/notebook/display": true}

// plotUsers are the only packages that know of gonum/plot; a notebook shows its plots.
var plotUsers = map[string]bool{"plots": true, "krrlab/notebook/bindings": true, "krrlab/notebook/display": true}

const (
	gota = "github.com/go-gota/gota"
	plot = "gonum.org/v1/plot"
)

// checkFloors returns the imports of p that break the order of the floors.
func checkFloors(t *Tree, p *Package) (out []Violation) {
	floor, listed := floors[p.Path]
	if !listed {
		return []Violation{{p.Files[0].Name, 1, fmt.Sprintf("package %s has no floor; add it to floors in krrlab/internal/lint/floors.go", p.Path)}}
	}
	for _, f := range p.Files {
		for _, imp := range f.imports() {
			add := func(format string, args ...any) {
				out = append(out, Violation{f.Name, imp.line, fmt.Sprintf(format, args...)})
			}
			switch {
			case within(imp.path, gota) && !gotaUsers[p.Path]:
				add("%s imports gota; only datasets, krrlab and experiments may", p.Path)
			case within(imp.path, plot) && !plotUsers[p.Path]:
				add("%s imports gonum/plot; make a plots.Figure instead", p.Path)
			}
			target, ours := t.local(imp.path)
			if !ours {
				continue
			}
			other, known := floors[target]
			switch {
			case target == "plots" && floor < stages:
				add("%s imports plots; below floor %d return numbers and let the caller draw", p.Path, stages)
			case p.Path == "krrlab/pcg" && (target == "krrlab/gram" || target == "krrlab/precond"):
				add("pcg imports %s; it must know an operator and a preconditioner by its own interfaces only", target)
			case !known:
				// Reported once, at the package itself.
			case other > floor:
				add("%s (floor %d) imports %s (floor %d); move what is needed down, or the package up", p.Path, floor, target, other)
			case other == floor && allowed[[2]string{p.Path, target}] == "":
				add("%s imports %s of its own floor %d; move what both need down, or add the pair with its reason to allowed in krrlab/internal/lint/floors.go",
					p.Path, target, floor)
			}
		}
	}
	return out
}

// within reports whether an import path is pkg or below it.
func within(path, pkg string) bool { return path == pkg || strings.HasPrefix(path, pkg+"/") }
