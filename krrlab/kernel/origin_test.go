package kernel_test

import (
	"testing"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestPlacementShift checks that NewPlacement shifts points by their mean if they are close together and far from zero,
// and only for shift-invariant kernels.
func TestPlacementShift(t *testing.T) {
	gaussian := kernel.Gaussian{Sigma: 1}
	for _, c := range []struct {
		k    kernel.Kernel
		x    []float64
		want bool // whether the points are shifted
	}{
		{gaussian, []float64{0, 0}, false},
		{gaussian, []float64{5}, true},
		{gaussian, []float64{10, 11, 12}, true},
		{gaussian, []float64{1, 2, 3}, false},
		{gaussian, []float64{-10, 10, -10, 10}, false},
		{gaussian, []float64{10, 11, 10, 0}, false}, // one outlier
		{gaussian, []float64{10, 10, 10, 10, 7.5, 10}, true},
		{gaussian, []float64{10, 10, 10, 10, 6, 10}, false}, // the mean is 9.33
		{kernel.Laplacian{Sigma: 1}, []float64{10, 11, 12}, true},
		{kernel.Polynomial{Gamma: 1, Degree: 2}, []float64{10, 11, 12}, false},
		{kernel.Func{F: gaussian.Eval}, []float64{10, 11, 12}, false},
	} {
		x := points.NewDense(len(c.x), 1, c.x)
		shift := kernel.NewPlacement(c.k, x).Shift
		if (shift != nil) != c.want || shift != nil && shift[0] != points.Mean(x)[0] {
			t.Errorf("%v of %v: shift %v, want one: %v", c.k, c.x, shift, c.want)
		}
	}
}
