package precond

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestSpectralTransform checks TTᵀ = I − σ_s²(ZᵀZ)⁻¹ against ZᵀZ in float64, that ‖T‖₂ ≤ 1, and that ranks have the
// bits of one process.
func TestSpectralTransform(t *testing.T) {
	const n, s = 1100, 150 // more than one block of columns
	z := randomFeatures(n, s)
	full := mat.NewDense(n, s, nil)
	for i := range n {
		points.Widen(full.RawRowView(i), z.Row(i))
	}
	var g, outer mat.SymDense
	g.SymOuterK(1, full.T())
	smallest := testkit.Eigenvalues(t, &g)[0]
	got, sigma2, err := SpectralTransform(t.Context(), comm.Alone(), z)
	testkit.OK(t, err)
	testkit.Near(t, sigma2, smallest, 1e-12*smallest)
	outer.SymOuterK(1, mat.NewDense(s, s, got))
	if mu := testkit.Eigenvalues(t, &outer); mu[s-1] > 1+1e-14 || mu[s-1] < 0.5 {
		t.Errorf("‖T‖₂² = %v", mu[s-1])
	}
	var difference mat.Dense
	difference.Mul(&outer, &g) // ZᵀZ − σ_s²I
	difference.Sub(&difference, testkit.AddRidge(&g, -smallest))
	// T is shorter than V·diag(√(1−σ_s²/σ_j²)) by a relative amount of this size, which keeps ‖T‖₂ ≤ 1
	if norm := mat.Norm(&difference, math.Inf(1)); norm > 2*s*s*0x1p-51*mat.Norm(&g, math.Inf(1)) {
		t.Errorf("TTᵀZᵀZ differs from ZᵀZ−σ_s²I by %g", norm)
	}
	onRanks(3, z, func(c comm.Comm, own *points.Dense32) {
		if m, v, err := SpectralTransform(t.Context(), c, own); err != nil || v != sigma2 || !slices.Equal(m, got) {
			t.Errorf("rank %d: other bits than one process: σ_s² = %v, %v, %v", c.Rank(), v, sigma2, err)
		}
	})
	testkit.CheckCancellation(t, func(ctx context.Context) error {
		_, _, err := SpectralTransform(ctx, comm.Alone(), z)
		return err
	})
}

// TestRanksPerFactor checks that only a wide L⁻¹ is distributed over the ranks, and the memory that it takes.
func TestRanksPerFactor(t *testing.T) {
	for _, c := range []struct {
		form    Form
		s, want int
	}{{FormLInv, 2048, 1}, {FormLInv, 2049, 3}, {FormL, 4096, 1}, {FormEigen, 4096, 1}, {AutoForm, 4096, 3}} {
		testkit.Equal(t, RanksPerFactor(c.form, 1e5, c.s, 10, 3), c.want, c.form, c.s)
	}
	const s = 20000
	for _, p := range []int64{1, 2, 4} {
		stored, forming := FactorBytes(s, int(p))
		lowest := 16 * s * s / p
		if stored != 8*s*s/p || p == 1 && forming != lowest || p > 1 && !(forming > lowest && forming < 16*s*s) {
			t.Errorf("%d sharers of s = %d: %d and %d bytes", p, s, stored, forming)
		}
	}
}
