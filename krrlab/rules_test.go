package krrlab

import (
	"slices"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestFingerprintOf: sparse points by their entries, of more numbers than are hashed at a time; and none are left out.
func TestFingerprintOf(t *testing.T) {
	of := func(x points.Points) [32]byte {
		return (&datasets.Dataset{Task: datasets.Regression, X: x, Target: []float64{1, 2}}).Fingerprint()
	}
	const d = 5000
	dense, sparse := points.NewDense(2, d, nil), &points.CSR{N: 2, D: d, Ptr: []int{0, d, 2 * d}}
	for i := range 2 * d {
		dense.Data[i] = float64(i)
		sparse.Col, sparse.Val = append(sparse.Col, int32(i%d)), append(sparse.Val, float64(i))
	}
	seen := map[[32]byte]bool{of(dense): true, of(sparse): true}
	for _, i := range []int{0, 1, d - 1, d, 2*d - 1} {
		x, s := points.NewDense(2, d, slices.Clone(dense.Data)), *sparse
		x.Data[i]++
		s.Val = slices.Clone(s.Val)
		s.Val[i]++
		seen[of(x)], seen[of(&s)] = true, true
	}
	moved, shorter := *sparse, *sparse
	moved.Ptr, shorter.Ptr = []int{0, d - 1, 2 * d}, []int{0, d, 2*d - 1}
	seen[of(&moved)], seen[of(&shorter)] = true, true
	testkit.Equal(t, len(seen), 14)
	view := &points.CSR{N: 3, D: d, Ptr: []int{0, 0, d, 2 * d}, Col: sparse.Col, Val: sparse.Val}
	testkit.Equal(t, of(view.Slice(1, 3)), of(sparse))
}
