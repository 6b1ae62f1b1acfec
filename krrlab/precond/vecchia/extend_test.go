package vecchia_test

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/precond/vecchia"
)

// TestExtend extends M twice. The rows of G must have the bits of those of New with the new points last in the order.
// M⁻¹x must agree to 1e-9, the rounding of the factor of W, and must have the same bits on one thread and on two. The
// low-rank factor F is absent or extended as well.
func TestExtend(t *testing.T) {
	const n, firstRows = 260, 200
	for seed := range uint64(2) {
		x := points.NewDense(n, 3, testkit.Normals(seed, 1, 3*n))
		k := kernel.Gaussian{Sigma: 0.8}
		g := rng.New(seed)
		complete := testkit.Must(gram.New(t.Context(), k, x, 0.1, &gram.Options{Tiles: gram.DenseTiles}))
		leading := func(rows int) *gram.Matrix {
			return testkit.Must(gram.New(t.Context(), k, x.Slice(0, rows), 0.1, &gram.Options{Tiles: gram.DenseTiles}))
		}
		factor := testkit.Must(lowrank.RPCholesky(t.Context(), leading(firstRows).Exact(1e-12), 15, g, nil))
		extended := testkit.Must(factor.Extend(t.Context(), complete.Exact(1e-12), nil))
		for _, f := range []*points.Dense32{nil, extended.F} {
			rowsOfF := func(rows int) *points.Dense32 {
				if f == nil {
					return nil
				}
				return f.Slice(0, rows).(*points.Dense32)
			}
			opts := &vecchia.Options{Neighbors: 7, Damping: 0.6, Order: randomOrder(firstRows, g)}
			extendTwice := func(threads int) (*vecchia.Inverse, *mat.Dense) {
				defer accel.SetThreads(accel.Threads())
				accel.SetThreads(threads)
				m := testkit.Must(vecchia.New(t.Context(), leading(firstRows), rowsOfF(firstRows), opts))
				m = testkit.Must(m.Extend(t.Context(), leading(firstRows+1), rowsOfF(firstRows+1)))
				m = testkit.Must(m.Extend(t.Context(), complete, f))
				y := mat.NewDense(n, 2, testkit.Normals(seed, 2, 2*n))
				testkit.OK(t, m.SolveTo(t.Context(), y, y))
				return m, y
			}
			m, y := extendTwice(2)
			_, onOneThread := extendTwice(1)
			extendedOrder := slices.Clone(opts.Order)
			for i := firstRows; i < n; i++ {
				extendedOrder = append(extendedOrder, int32(i))
			}
			want := testkit.Must(vecchia.New(t.Context(), complete, f,
				&vecchia.Options{Neighbors: 7, Damping: 0.6, Order: extendedOrder}))
			for i := range n {
				cols, values := m.Row(i)
				wantCols, wantValues := want.Row(i)
				if !slices.Equal(cols, wantCols) || !slices.Equal(values, wantValues) {
					t.Fatalf("seed %d: row %d of G is %v %v, want %v %v", seed, i, cols, values, wantCols, wantValues)
				}
			}
			z := mat.NewDense(n, 2, testkit.Normals(seed, 2, 2*n))
			testkit.OK(t, want.SolveTo(t.Context(), z, z))
			if deviation := testkit.RelativeDifference(y, z); !(deviation <= 1e-9*mat.Norm(z, 2)) || !mat.Equal(y,
				onOneThread) {
				t.Errorf("seed %d: M⁻¹x is off by %g, or differs between threads", seed, deviation)
			}
			if difference := m.LogDet() - want.LogDet(); difference*difference > 1e-12 ||
				m.Description() != want.Description() {
				t.Errorf("ln det is off by %g; %s, want %s", difference, m.Description(), want.Description())
			}
		}
	}
	m := testkit.Must(vecchia.New(t.Context(), testkit.Must(gram.New(t.Context(), kernel.Gaussian{Sigma: 1},
		points.NewDense(9, 1, testkit.Normals(1, 1, 9)), 1, nil)), nil, nil))
	testkit.Panics(t, map[string]func(){"order 9 and rank 0 extended to order 5": func() {
		small := testkit.Must(gram.New(t.Context(), kernel.Gaussian{Sigma: 1}, points.NewDense(5, 1, nil), 1, nil))
		_, _ = m.Extend(t.Context(), small, nil)
	}})
}
