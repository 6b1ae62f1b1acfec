package kernel_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestTileDimensions checks that a tile of points of different dimensions panics, for every kernel, precision and
// arithmetic.
func TestTileDimensions(t *testing.T) {
	x, z := points.NewPanel(points.NewDense(2, 3, nil)), points.NewPanel(points.NewDense(2, 4, nil))
	for _, k := range append(slices.Clone(kernels), minKernel{}) {
		for _, arithmetic := range []kernel.Arithmetic{kernel.Float32, kernel.Float64, kernel.Differences} {
			for name, formTile := range map[string]func(w *kernel.Workspace){
				"Tile64": func(w *kernel.Workspace) { kernel.Tile64(make([]float64, 4), 2, k, x, z, arithmetic, w) },
				"Tile32": func(w *kernel.Workspace) { kernel.Tile32(make([]float32, 4), 2, k, x, z, arithmetic, w) },
			} {
				title := fmt.Sprint(name, k, arithmetic)
				testkit.Panics(t, map[string]func(){title: func() { formTile(&kernel.Workspace{}) }})
			}
		}
	}
}

// TestWideUserKernel checks a tile of a user-defined kernel, and its scratch memory, for points of so many coordinates
// that only two of them are converted at a time.
func TestWideUserKernel(t *testing.T) {
	const d, n = 1 << 17, 5
	x := points.NewDense(n, d, nil)
	for i := range n {
		x.Data[i*d+i] = float64(i + 1)
	}
	p := points.NewPanel(x)
	got, w := make([]float64, n*n), &kernel.Workspace{}
	bytes := testkit.AllocatedBytes(func() { kernel.Tile64(got, n, minKernel{}, p, p, kernel.Float64, w) })
	if want := evalAll(minKernel{}, x, x); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if bytes > 9*3*d { // 8 bytes per coordinate, and some slack
		t.Errorf("scratch of %d bytes, want that of three points, %d", bytes, 8*3*d)
	}
}
