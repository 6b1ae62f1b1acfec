package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// stageFloor is the lowest floor whose packages may show numbers. Packages below it do not print, draw, or use
// properties of the process.
const stageFloor = 4

// floors lists the floor of every package of the module. A package may import packages of lower floors; allowedImports
// lists the exceptions. Add new packages here.
var floors = map[string]int{
	"krrlab/accel":            0,
	"krrlab/accel/gemm":       0,
	"krrlab/accel/simd":       0,
	"krrlab/ranks/comm":       0,
	"krrlab/base/atomicfile":  0,
	"krrlab/internal/enum":    0,
	"krrlab/internal/group":   0,
	"krrlab/base/npy":         0,
	"krrlab/internal/outward": 0,
	"krrlab/internal/plural":  0,
	"krrlab/internal/race":    0,
	"krrlab/base/safe":        0,
	"krrlab/base/schema":      0,
	"krrlab/internal/buffer":  0,
	"krrlab/internal/dl":      0,
	"krrlab/kernel/points":    0,
	"krrlab/notebook/bindgen": 0,
	"krrlab/notebook/zmtp":    0,
	"krrlab/notebook/widget":  0,
	"krrlab/base/rng":         0,
	"krrlab/base/suite":       0,
	"krrlab/kernel/tree":      0,
	"plots/internal/text":     0,

	"datasets":                   1,
	"datasets/parquet":           2,
	"plots":                      1,
	"krrlab/krylov/estimate":     1,
	"krrlab/internal/checkpoint": 1,
	"krrlab/internal/testkit":    1,
	"krrlab/kernel":              1,
	"krrlab/precond/sketch":      1,

	"krrlab/precond/feature": 2,
	"krrlab/kernel/fourier":  2,
	"krrlab/kernel/gram":     2,
	"krrlab/krylov/lanczos":  2,
	"krrlab/precond/lowrank": 2,
	"krrlab/krylov/pcg":      2,
	"krrlab/precond":         2,

	"krrlab/krylov/bound":        3,
	"krrlab/krylov/direct":       3,
	"krrlab/model/leaveout":      3,
	"krrlab/model":               3,
	"krrlab/precond/precondtest": 3,
	"krrlab/precond/process":     3,
	"krrlab/precond/vecchia":     3,

	"plots/draw":              stageFloor,
	"krrlab/notebook/display": stageFloor,
	"krrlab/notebook/jupyter": stageFloor,
	"krrlab/stage":            stageFloor,
	"krrlab/model/serve":      stageFloor,
	"krrlab/krylov/pencil":    stageFloor,
	"krrlab/stage/cost":       stageFloor,
	"krrlab/precond/recipe":   stageFloor,

	"experiments/baseline": 5,

	"krrlab/stage/plan":       5,
	"krrlab/stage/compare":    5,
	"krrlab/stage/tune":       5,
	"krrlab/stage/sketchsize": 5,
	"krrlab/stage/statdim":    5,
	"krrlab/stage/lambdap":    5,
	"krrlab/stage/quality":    5,
	"krrlab/stage/solve":      5,
	"krrlab/stage/multilevel": 5,
	"krrlab/stage/loo":        5,
	"krrlab/model/interval":   5,
	"krrlab/stage/verify":     5,
	"krrlab/model/explain":    6,

	"krrlab": 6,

	"experiments/testbed": 7,
	"experiments":         7,
	"theory":              7,
	"krrlab/ranks/remote": 7,

	"krrlab/notebook/engine":  7,
	"krrlab/notebook/modules": 7,
	"krrlab/notebook/native":  7,

	"krrlab/cli":               8,
	"krrlab/notebook":          8,
	"krrlab/notebook/bindings": 8,
	"krrlab/notebook/golang":   8,
	"krrlab/notebook/panel":    8,

	"krrlab/cmd/krrlab":    9,
	"krrlab/cmd/program":   9,
	"krrlab/internal/lint": 9,
	"notebooks":            9,
}

// allowedImports lists the imports within one floor, with the reason for each.
var allowedImports = map[[2]string]string{
	{"krrlab/accel", "krrlab/accel/gemm"}:                  "the BLAS of a machine without OpenBLAS",
	{"krrlab/accel", "krrlab/accel/simd"}:                  "products use the instructions that simd selects",
	{"krrlab/accel/gemm", "krrlab/accel/simd"}:             "loops and products use the same instructions",
	{"krrlab/accel", "krrlab/internal/buffer"}:             "its products reuse their buffers",
	{"krrlab/accel", "krrlab/internal/dl"}:                 "OpenBLAS is a shared library",
	{"krrlab/ranks/comm", "krrlab/internal/dl"}:            "MPI is a shared library",
	{"krrlab/kernel/points", "krrlab/internal/buffer"}:     "its loops reuse their buffers",
	{"krrlab/kernel/points", "krrlab/accel"}:               "products of many points run on the pool of workers",
	{"krrlab/kernel/points", "krrlab/accel/gemm"}:          "products of bytes are no BLAS routine",
	{"krrlab/ranks/comm", "krrlab/accel"}:                  "a rank knows how many threads it has",
	{"krrlab/base/schema", "krrlab/base/safe"}:             "a command line is for a shell",
	{"krrlab/kernel/tree", "krrlab/kernel/points"}:         "it orders points",
	{"krrlab/kernel/tree", "krrlab/internal/buffer"}:       "its loops reuse their buffers",
	{"krrlab/precond/lowrank", "krrlab/precond"}:           "rows of F are distributed as those of Z",
	{"krrlab/kernel/points", "krrlab/accel/simd"}:          "sums over coordinates are inner loops",
	{"krrlab/kernel/tree", "krrlab/accel"}:                 "it runs on the pool of workers",
	{"krrlab/cmd/krrlab", "krrlab/cmd/program"}:            "its main function, which other programs call too",
	{"krrlab/cli", "krrlab/notebook"}:                      "krrlab kernel and krrlab notebook are commands",
	{"krrlab/notebook", "krrlab/notebook/golang"}:          "the kernel is the protocol around the interpreter",
	{"krrlab/notebook/golang", "krrlab/notebook/bindings"}: "the interpreter knows what cells may import",
	{"krrlab/notebook/golang", "krrlab/notebook/panel"}:    "cells make panels",
	{"krrlab/notebook/display", "plots/draw"}:              "cells show pictures",
	{"krrlab/krylov/pencil", "krrlab/stage"}:               "it reports progress as stages do",
	{"krrlab/krylov/bound", "krrlab/model"}:                "a model contains the bounds of its error",
	{"krrlab/stage/cost", "krrlab/stage"}:                  "it predicts the cost of a stage.Preconditioner",
	{"krrlab/precond/recipe", "krrlab/stage"}:              "its kinds are stage.Preconditioners",
	{"krrlab/precond/recipe", "krrlab/stage/cost"}:         "its kinds predict their cost",
	{"krrlab/stage/solve", "krrlab/stage/plan"}:            "a solution contains its plan",
}

// restrictedModules lists modules that just a few packages may import: gota's data frames and gonum/plot, which a
// notebook shows.
var restrictedModules = map[string][]string{
	"github.com/go-gota/gota": {"krrlab/notebook/bindings", "krrlab/notebook/display"},
	"gonum.org/v1/plot":       {"plots/draw", "krrlab/notebook/bindings", "krrlab/notebook/display"},
}

// importRule returns the rule that the import of imp by pkg breaks, or "" if it breaks none.
func importRule(pkg, imp string) string {
	floor, listed := floors[pkg]
	if !listed {
		return fmt.Sprintf("package %s has no floor; add it to floors in krrlab/internal/lint/floors_test.go", pkg)
	}
	for restricted, users := range restrictedModules {
		if (imp == restricted || strings.HasPrefix(imp, restricted+"/")) && !slices.Contains(users, pkg) {
			return fmt.Sprintf("%s imports %s; only %s may", pkg, restricted, strings.Join(users, ", "))
		}
	}
	target, ours := strings.CutPrefix(imp, module+"/")
	targetFloor, known := floors[target]
	switch {
	case !ours || !known: // a missing floor is reported once, for the package itself
		return ""
	case target == "plots" && floor < stageFloor:
		return fmt.Sprintf("%s imports plots; below floor %d return numbers and let the caller draw", pkg, stageFloor)
	case pkg == "krrlab/krylov/pcg" && (target == "krrlab/kernel/gram" || target == "krrlab/precond"):
		return fmt.Sprintf("pcg imports %s; it must know an operator and a preconditioner by its own interfaces only",
			target)
	case targetFloor > floor:
		return fmt.Sprintf("%s (floor %d) imports %s (floor %d); move what is needed down, or the package up", pkg,
			floor, target, targetFloor)
	case targetFloor == floor && allowedImports[[2]string{pkg, target}] == "":
		return fmt.Sprintf("%s imports %s on its own floor %d; move what both need down, or add the pair with its "+
			"reason to allowedImports", pkg, target, floor)
	}
	return ""
}

// processUses matches what only a command may use: functions that end the process, read its environment, or choose its
// BLAS.
var processUses = regexp.MustCompile(`^os\.(Exit|Getenv|LookupEnv|Environ|ExpandEnv|Setenv|Unsetenv|User\w+Dir|Args)$|^log\.Fatal|^` +
	module + `/krrlab/accel\.UseLibrary$`)

// allowedProcessUses lists the exceptions from processUses. Packages read their defaults from the environment, as
// accel.EnvBLAS and datasets.Dirs do, and accel sets variables that OpenBLAS reads while it is loaded.
var allowedProcessUses = map[string]bool{
	"krrlab/accel os.Setenv": true, "krrlab/accel os.Unsetenv": true,
	"krrlab/accel os.Getenv": true, "krrlab/base/suite os.Getenv": true, "datasets os.Getenv": true,
	"datasets os.UserCacheDir":                                       true,
	"krrlab/internal/testkit " + module + "/krrlab/accel.UseLibrary": true,
}

// printingFunctions matches functions that print, which packages below the stages must not use.
var printingFunctions = regexp.MustCompile(`^fmt\.Print|^os\.Std|^log(/slog)?\.|^println?$`)

// useRule returns the rule that pkg breaks by using an object (path.Name), or "" if it breaks none.
func useRule(pkg, object string) string {
	floor, known := floors[pkg]
	switch {
	case known && floor < stageFloor && printingFunctions.MatchString(object):
		return fmt.Sprintf("%s in %s; below floor %d return it, or call a hook", object, pkg, stageFloor)
	case processUses.MatchString(object) && !strings.HasPrefix(pkg,
		"krrlab/cmd/") && !allowedProcessUses[pkg+" "+object]:
		return fmt.Sprintf("%s in %s; only krrlab/cmd may, pass the value in", object, pkg)
	}
	return ""
}
