package kernel_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// pointsWithFewDistances returns n random byte points with coordinates 0, 1 and sometimes 3, times a scale.
func pointsWithFewDistances(n, d int, scale float64) *points.Bytes {
	g := rand.New(rand.NewPCG(uint64(n), uint64(d)))
	x := points.NewBytes(n, d, scale, nil)
	for i := range n {
		for j := range x.Row(i) {
			x.Row(i)[j] = []uint8{0, 0, 0, 1, 1, 3}[g.IntN(6)]
		}
	}
	return x
}

// TestDistanceTable checks that float64 tiles from a DistanceTable have the bits of the kernel's own tiles, with any
// shift, which Tile64 ignores. Float32 tiles must have those bits minus shift, rounded to float32. Padding behind the
// rows and results that are subnormal in float32 must be 0.
func TestDistanceTable(t *testing.T) {
	defer simd.UsePath(simd.CurrentPath())
	const nx, nz, ld = 7, 19, 23
	for _, d := range []int{1, 9, 130} {
		x := points.NewPanel(pointsWithFewDistances(nx, d, 0.25))
		z := points.NewPanel32(pointsWithFewDistances(nz, d, 0.25))
		xAndZ := points.Panel{X: x.X, Norms: slices.Concat(x.Norms, z.Norms)}
		for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 3}, kernel.Gaussian{Sigma: 0.06},
			kernel.Matern32{Sigma: 2}, kernel.Matern52{Sigma: 0.02}, multiquadric{1, 1}} {
			table := kernel.NewDistanceTable(k, xAndZ)
			if table == nil {
				t.Fatalf("%v, d = %d: no table", k, d)
			}
			for _, shift := range []float64{0, 0.375, 0.9} {
				shifted := table.WithShift(shift)
				for _, path := range simd.Paths() {
					simd.UsePath(path)
					want, got64, got32 := make([]float64, nx*ld), make([]float64, nx*ld), make([]float32, nx*ld)
					var w kernel.Workspace
					kernel.Tile64(want, ld, k, x, z, kernel.Differences, &w)
					shifted.Tile64(got64, ld, x, z, &w)
					shifted.Tile32(got32, ld, x, z, &w)
					for i, v := range want {
						if got64[i] != v {
							t.Fatalf("%v, d = %d, %v: entry %d is %v, want %v", k, d, path, i, got64[i], v)
						}
						const leastNormal = 0x1p-126 // of float32
						if v -= shift; i%ld >= nz || math.Abs(v) < leastNormal {
							v = 0
						}
						if got32[i] != float32(v) {
							t.Fatalf("%v less %v, d = %d, %v: entry %d is %v, want %v", k, shift, d, path, i, got32[i],
								float32(v))
						}
					}
				}
			}
		}
	}
}

// TestNoDistanceTable checks that only a radial kernel has a DistanceTable, and only for byte points whose distances
// take few values.
func TestNoDistanceTable(t *testing.T) {
	x, gauss := pointsWithFewDistances(5, 40, 1), kernel.Gaussian{Sigma: 1}
	dense := points.NewDense(5, 40, nil)
	points.RowsTo(x, dense.Data, 40)
	large := points.NewBytes(1, 9, 1, []uint8{15, 15, 15, 15, 15, 15, 15, 15, 15})
	for name, c := range map[string]struct {
		k kernel.Kernel
		x points.Points
	}{
		"dense points":         {gauss, dense},
		"Laplacian":            {kernel.Laplacian{Sigma: 1}, x},
		"polynomial":           {kernel.Polynomial{Gamma: 1, Degree: 2}, x},
		"no points":            {gauss, points.NewBytes(0, 3, 1, nil)},
		"too many coordinates": {gauss, points.NewBytes(1, gemm.MaxBytesK+1, 1, nil)},
		"norm above the limit": {gauss, points.NewBytes(1, 10, 1, append(large.Data, 5))}, // ‖x‖² = 2,050 > 2,048
	} {
		if table := kernel.NewDistanceTable(c.k, points.NewPanel(c.x)); table != nil {
			t.Errorf("%s: got a table, want nil", name)
		}
	}
	if table := kernel.NewDistanceTable(gauss, points.NewPanel(large)); table == nil {
		t.Error("‖x‖² = 2,025: got no table; the limit is 2,048")
	}
}
