package krrlab

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestSketchSizeMemory checks that the search for s is refused, without a limit of the configuration, if the memory
// that the process may still allocate does not suffice.
func TestSketchSizeMemory(t *testing.T) {
	lab := newLab(t, datasets.SyntheticRegression(900, 3, 0.1, 1), Config{Kernel: kernel.Gaussian{Sigma: 1.2},
		Lambda: 0.1})
	solveLab(t, lab) // K is in memory
	runtime.GC()     // garbage that is collected later would count as free memory
	runtime.GC()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(accel.MemoryInUse() + 1<<20))
	_, err := lab.SketchSize(t.Context(), SketchSizeOptions{First: 800})
	testkit.Fails(t, err, "s = 800 features of n = 900 points")
}
