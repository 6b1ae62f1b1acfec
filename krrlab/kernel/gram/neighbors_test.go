package gram_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestNeighbors compares Neighbors, the points before i with the largest |k_ij|/√(k_ii·k_jj), with a sort of the row of
// the stored matrix. A third of the points occur twice.
func TestNeighbors(t *testing.T) {
	const n, count = 130, 7
	x := make([]float64, 3*n)
	rng.New(1).Sub("points").Normals(x, 0)
	copy(x[3*80:3*120], x)
	position := make([]int32, n)
	for p, i := range rng.New(2).Perm(n) {
		position[i] = int32(p)
	}
	for _, c := range []struct {
		k       kernel.Kernel
		storage gram.Storage
	}{
		{kernel.Gaussian{Sigma: 1}, gram.Float64}, {kernel.Gaussian{Sigma: 1}, gram.Float32},
		{kernel.Gaussian{Sigma: 1}, gram.Fixed16},
		{kernel.Laplacian{Sigma: 1}, gram.Recompute}, {kernel.Polynomial{Gamma: 1, Coef0: 0, Degree: 3}, gram.Float32},
	} {
		m := testkit.Must(gram.New(t.Context(), c.k, points.NewDense(n, 3, x), 1,
			&gram.Options{Storage: c.storage, TileSize: 32}))
		neighbors := testkit.Must(m.Neighbors(t.Context(), position, count))
		k := mat.NewDense(n, n, nil)
		testkit.OK(t, m.DenseTo(t.Context(), k))
		diagonal := m.Diag()
		value := func(i, j int) float64 {
			if kernel.Bounded01(c.k) {
				return float64(float32(k.At(i, j)))
			}
			return k.At(i, j) / math.Sqrt(diagonal[i]*diagonal[j])
		}
		for i := range n {
			var want []int
			for j := range n {
				if position[j] < position[i] {
					want = append(want, j)
				}
			}
			slices.SortStableFunc(want, func(p, q int) int {
				return cmp.Compare(math.Abs(value(i, q)),
					math.Abs(value(i, p)))
			})
			index, values := neighbors.Of(i)
			if len(index) != min(count, len(want)) {
				t.Fatalf("%v %v: point %d has %d neighbors of %d", c.k, c.storage, i, len(index), len(want))
			}
			for a, j := range index {
				got, wantValue := value(i, int(j)), value(i, want[a])
				if position[j] >= position[i] || math.Abs(math.Abs(got)-math.Abs(wantValue)) > 1e-6 ||
					math.Abs(got-float64(values[a])) > 1e-6 {
					t.Errorf("%v %v: neighbor %d of point %d is %d of %g (%g), want %d of %g", c.k, c.storage, a, i, j,
						got, values[a], want[a], wantValue)
				}
			}
		}
	}
}
