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
	z64 := mat.NewDense(n, s, nil)
	for i := range n {
		points.Widen(z64.RawRowView(i), z.Row(i))
	}
	var g, outer mat.SymDense
	g.SymOuterK(1, z64.T())
	smallest := testkit.Eigenvalues(t, &g)[0]
	got, sigma2, err := SpectralTransform(t.Context(), comm.Alone(), z)
	testkit.OK(t, err)
	testkit.Near(t, sigma2, smallest, 1e-12*smallest)
	outer.SymOuterK(1, mat.NewDense(s, s, got))
	if squares := testkit.Eigenvalues(t, &outer); squares[s-1] > 1+1e-14 || squares[s-1] < 0.5 {
		t.Errorf("‖T‖₂² = %v", squares[s-1])
	}
	var difference mat.Dense
	difference.Mul(&outer, &g) // ZᵀZ − σ_s²I
	difference.Sub(&difference, testkit.AddRidge(&g, -smallest))
	// T is shorter than V·diag(√(1−σ_s²/σ_j²)) by a relative amount of this size, which keeps ‖T‖₂ ≤ 1
	if norm := mat.Norm(&difference, math.Inf(1)); norm > 2*s*s*0x1p-51*mat.Norm(&g, math.Inf(1)) {
		t.Errorf("TTᵀZᵀZ differs from ZᵀZ−σ_s²I by %g", norm)
	}
	onRanks(3, z, func(c comm.Comm, rankRows *points.Dense32) {
		transform, smallestOnRank, err := SpectralTransform(t.Context(), c, rankRows)
		if err != nil || smallestOnRank != sigma2 || !slices.Equal(transform, got) {
			t.Errorf("rank %d: other bits than one process: σ_s² = %v, %v, %v", c.Rank(), smallestOnRank, sigma2, err)
		}
	})
	testkit.CheckCancellation(t, func(ctx context.Context) error {
		_, _, err := SpectralTransform(ctx, comm.Alone(), z)
		return err
	})
}

// TestRanksPerFactor checks that only a wide L⁻¹ is distributed over the ranks, and the memory that it takes.
func TestRanksPerFactor(t *testing.T) {
	for _, test := range []struct {
		form    Form
		s, want int
	}{{FormLInv, 2048, 1}, {FormLInv, 2049, 3}, {FormL, 4096, 1}, {FormEigen, 4096, 1}, {AutoForm, 4096, 3}} {
		testkit.Equal(t, RanksPerFactor(test.form, 1e5, test.s, 10, 3), test.want, test.form, test.s)
	}
	const s = 20000
	for _, sharers := range []int64{1, 2, 4} {
		stored, forming := FactorBytes(s, int(sharers))
		lowest := 16 * s * s / sharers
		if stored != 8*s*s/sharers || sharers == 1 && forming != lowest ||
			sharers > 1 && !(forming > lowest && forming < 16*s*s) {
			t.Errorf("%d sharers of s = %d: %d and %d bytes", sharers, s, stored, forming)
		}
	}
}
