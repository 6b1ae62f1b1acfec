package model

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestBoundsOfBytes checks the bounds of a model of byte points far from zero. The bounds must include the rounding
// error of inner products for points between two bytes, but not for byte points with the scale of the model, whose
// inner products are exact.
func TestBoundsOfBytes(t *testing.T) {
	const n, d = 3, 500
	x := points.NewBytes(n, d, 1, nil)
	for i := range x.Data {
		x.Data[i] = uint8(255 - i%3)
	}
	m := randomModel(kernel.Gaussian{Sigma: 1}, x, 1)
	m.ErrorBounds = &ErrorBounds{ANorm: []float64{0}} // no error of the coefficients, so that only rounding remains
	wholeNumbers := points.NewDense(1, d, slices.Repeat([]float64{255}, d))
	halfway := points.NewDense(1, d, slices.Repeat([]float64{254.5}, d))
	relativeBound := func(z points.Points) float64 { // bound of a prediction, divided by ‖C‖₁
		bounds := testkit.Must(m.DecisionBounds(&datasets.Dataset{X: z}))
		return bounds.At(0, 0) / mat.Norm(m.C, 1)
	}
	bytePoints, _ := points.AsBytes(wholeNumbers, 1)
	if v := relativeBound(bytePoints); !(v > 0 && v < 1e-14) {
		t.Errorf("the relative bound at byte points is %g, want at most 1e-14", v)
	}
	if v, entryError := relativeBound(halfway), kernel.EntryError(m.Kernel, kernel.Float64,
		kernel.PointSummary{Dim: d, MaxSq: d * 255 * 255}); !(v >= entryError/2) {
		t.Errorf("the relative bound at points between bytes is %g, want at least %g", v, entryError/2)
	}
}
