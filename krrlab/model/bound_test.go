package model

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestBoundsOfBytes checks the bounds of a model of byte points far from zero. Numbers between two bytes must have
// the rounding error of inner products in their bounds, while bytes of the model's scale, whose inner products are
// exact, must not.
func TestBoundsOfBytes(t *testing.T) {
	const n, d = 3, 500
	x := points.NewBytes(n, d, 1, nil)
	for i := range x.Data {
		x.Data[i] = uint8(255 - i%3)
	}
	m := random(kernel.Gaussian{Sigma: 1}, x, 1)
	m.Error = &Error{ANorm: []float64{0}}
	bytes, between := points.NewDense(1, d, nil), points.NewDense(1, d, nil)
	for j := range d {
		bytes.Data[j], between.Data[j] = 255, 254.5
	}
	bound := func(z points.Points) float64 {
		b := testkit.Must(m.Bounds(&datasets.Dataset{X: z}))
		return b.At(0, 0) / mat.Norm(m.C, 1)
	}
	bytePoints, _ := points.AsBytes(bytes, 1)
	if v := bound(bytePoints); !(v > 0 && v < 1e-14) {
		t.Errorf("bytes: %g", v)
	}
	if v, entryError := bound(between), kernel.EntryError(m.Kernel, kernel.Float64,
		kernel.PointSummary{Dim: d, MaxSq: d * 255 * 255}); !(v >= entryError/2) {
		t.Errorf("numbers between them: %g, below %g", v, entryError)
	}
}
