package model

import (
	"math"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// sameRow is by how much a feature may differ from the model's, which may be kept in float32, relative to the largest.
const sameRow = 1e-6

// FittedOn reports whether the rows of d, raw or scaled as the model's points are, are the first of these.
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
			if !(math.Abs(v-b[i]) <= sameRow*max(1, math.Abs(v))) {
				return false
			}
		}
	}
	return true
}
