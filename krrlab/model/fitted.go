package model

import (
	"math"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// rowTolerance is the largest difference between features of equal rows, relative to the feature or to 1. The model's
// features may be stored in float32; a smaller value would not recognize such rows.
const rowTolerance = 1e-6

// FittedOn reports whether the rows of d, raw or scaled as the model's points, are equal to the model's first points.
func (m *Model) FittedOn(d *datasets.Dataset) bool {
	n, dim, _ := m.Dims()
	d, err := m.Scaled(d)
	if err != nil || d.Len() > n {
		return false
	}
	const block = 256
	a, b := make([]float64, block*dim), make([]float64, block*dim)
	for lo := 0; lo < d.Len(); lo += block {
		hi := min(lo+block, d.Len())
		points.Panel64To(d.X.Slice(lo, hi), a, dim)
		points.Panel64To(m.X.Slice(lo, hi), b, dim)
		for i, v := range a[:(hi-lo)*dim] {
			if !(math.Abs(v-b[i]) <= rowTolerance*max(1, math.Abs(v))) {
				return false
			}
		}
	}
	return true
}
