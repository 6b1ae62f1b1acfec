package kernel

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestSlopeBound checks that Slope, the bound of |∂k/∂r²|, is at least every difference quotient, and that it is
// attained near r = 0.
func TestSlopeBound(t *testing.T) {
	for _, sigma := range []float64{0.5, 1, 3} {
		for _, registered := range registry.kinds {
			k, ok := registered.prototypes[0].(Radial)
			if !ok || !BuiltIn(k) {
				continue
			}
			k = k.(Scaled).WithScale(sigma).(Radial)
			steepest := 0.0
			for i := range 2000 {
				sq := sigma * sigma * 1e-5 * math.Pow(1.008, float64(i)) // r², from 1e-5·σ² to about 83·σ²
				valueAt := func(sq float64) float64 { return k.Eval([]float64{math.Sqrt(sq)}, []float64{0}) }
				steepest = max(steepest, (valueAt(sq)-valueAt(1.001*sq))/(0.001*sq))
			}
			if bound := k.Slope(); steepest > bound*(1+1e-6) || steepest < 0.99*bound {
				t.Errorf("%v: steepest difference quotient %g, Slope %g", k, steepest, bound)
			}
		}
	}
}

// TestEntryErrorFormula compares EntryError with the documented bounds, in units of the rounding 2⁻⁵³, for points of
// dimension 9.
func TestEntryErrorFormula(t *testing.T) {
	const d = 9
	origin := PointSummary{Dim: d, MaxSq: 100}
	sparse, moved, distant := origin, origin, PointSummary{Dim: d, MaxSq: 1e30}
	sparse.Sparse, moved.Shifted = true, true
	for _, c := range []struct {
		k          Kernel
		arithmetic Arithmetic
		summary    PointSummary
		units      float64
	}{
		{Gaussian{2}, Differences, origin, 25},
		{Matern32{2}, Differences, distant, 25},
		{Gaussian{2}, Float64, origin, 4*21*100/8. + 16},    // |∂k/∂r²| ≤ 1/(2σ²)
		{Matern32{2}, Float64, moved, 4*21*100*3/8. + 16},   // 3/(2σ²)
		{Matern52{2}, Float32, sparse, 4*21*100*5/24. + 16}, // 5/(6σ²)
		{Gaussian{2}, Float64, distant, 0x1p53},             // an error of 1
		{Laplacian{2}, Float64, origin, 25},
		{Laplacian{2}, Differences, moved, 25},
		{Laplacian{2}, Float64, sparse, 4*21*30/2. + 16}, // √d·‖x‖₂ = 30
		{Laplacian{2}, Float64, moved, 4*21*30/2. + 16},
		{Laplacian{2}, Float64, PointSummary{Dim: d, MaxSq: 1e40, Shifted: true}, 0x1p53},
		{Polynomial{1, 1, 3}, Float64, distant, 3*13 + 8},
		{Polynomial{1, 1, 3}, Differences, origin, 3*13 + 8},
		{Func{F: Gaussian{1}.Eval}, Float64, distant, 0},
	} {
		testkit.Near(t, EntryError(c.k, c.arithmetic, c.summary)/0x1p-53, c.units, 1e-12*c.units, c.k, c.arithmetic,
			c.summary)
	}
}
