package model

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// sameRow is by how much a feature may differ from the model's, which may be kept in float32, relative to the largest.
const sameRow = 1e-6

var errOtherScaling = errors.New("the training data are not scaled as the model's points are: apply the model's " +
	"scaling to them (fit --warm does so if --scale is left out)")

// Start returns where a solve of (K+λI)C' = Y' with the kernel k may begin: the first rows of d, scaled as the model's
// points are, must be these, and more may follow. It is s_jc_j, 0 for rows that follow, with
//
//	s_j = c_jᵀy_j/(c_jᵀy_j + (λ−λ₀)‖c_j‖₂²),  λ₀ the model's,
//
// which of all multiples of c_j is nearest to the solution in the norm of K+λI if it solves its own system. It returns
// an error that says what is of another problem: kernel, labels, scaling, names or points.
func (m *Model) Start(d *datasets.Dataset, k kernel.Kernel, lambda float64) (*mat.Dense, error) {
	n, dim, t := m.Dims()
	switch {
	case m.Weighted || d.Weights != nil:
		return nil, errors.New("the model or the training data have weights, and a solve with weights cannot start " +
			"from a model: fit without --warm")
	case !reflect.DeepEqual(m.Kernel, k):
		return nil, fmt.Errorf("the model has the kernel %v, the fit %v: want the same kernel", m.Kernel, k)
	case d.Task != m.Task() || !reflect.DeepEqual(append([]string{}, d.Labels...), append([]string{}, m.Labels...)):
		return nil, fmt.Errorf("the model is for %v with the labels %q, the training data for %v with %q", m.Task(),
			m.Labels, d.Task, d.Labels)
	case d.Len() < n || d.Dim() != dim:
		return nil, fmt.Errorf("the model has %d points of %d features, the training data %d of %d: the model's "+
			"rows must come first, added ones after them", n, dim, d.Len(), d.Dim())
	case (d.Scaling == nil) != (m.Scaling == nil):
		return nil, errOtherScaling
	}
	if _, err := m.Scaling.Apply(d); err != nil {
		return nil, errOtherScaling
	}
	if err := d.CheckColumns(m.Columns, "the model"); err != nil {
		return nil, err
	}
	if i := otherRow(m.X, d.X); i >= 0 {
		return nil, fmt.Errorf("row %d (counted from 0) of the training data is not the model's: its rows must come "+
			"first, unchanged, added ones after them", i)
	}
	y, err := m.Coding().Encode(d.Head(n))
	if err != nil {
		return nil, err
	}
	start := mat.NewDense(d.Len(), t, nil)
	for j := range t {
		c := m.C.ColView(j)
		by := mat.Dot(c, y.ColView(j))
		s := by / (by + (lambda-m.Lambda)*mat.Dot(c, c))
		if !(s > 0) || math.IsInf(s, 1) {
			s = 1
		}
		for i := range n {
			start.Set(i, j, s*m.C.At(i, j))
		}
	}
	return start, nil
}

// FittedOn reports whether the rows of d, raw or scaled as the model's points are, are the first of these.
func (m *Model) FittedOn(d *datasets.Dataset) bool {
	n, dim, _ := m.Dims()
	if d.Len() > n || d.Dim() != dim {
		return false
	}
	d, err := m.Scaling.Apply(d)
	return err == nil && otherRow(d.X, m.X) < 0
}

// otherRow returns the first row of x that z does not have there, -1 if there is none.
func otherRow(x, z points.Points) int {
	n, d := x.Dims()
	const block = 256
	a, b := make([]float64, block*d), make([]float64, block*d)
	for lo := 0; lo < n; lo += block {
		hi := min(lo+block, n)
		x.Slice(lo, hi).Panel64To(a, d)
		z.Slice(lo, hi).Panel64To(b, d)
		for i, v := range a[:(hi-lo)*d] {
			if !(math.Abs(v-b[i]) <= sameRow*max(1, math.Abs(v))) {
				return lo + i/d
			}
		}
	}
	return -1
}
