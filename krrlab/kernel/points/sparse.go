package points

import "github.com/krrlab/lab/krrlab/internal/buffer"

// sparseGain is how many multiply-adds of a dense product cost as much as one of
// the walk over nonzeros: a pair of panels is walked when
//
//	Σ_c nnzA(c)·nnzB(c) · sparseGain < n_a·n_b·d.
//
// Measured: one walked pair costs 1.0–1.6 ns; a dense multiply-add in float32 costs
// 0.015–0.02 ns with OpenBLAS and about 0.15 ns with gonum's BLAS. The rule does not
// look at which is in use, so that results do not depend on it; 50 suits OpenBLAS.
const sparseGain = 50

// mergeGain is how many subtractions of a dense distance cost as much as a step of merge: 0.08 ns each with AVX-512,
// and 5.5 ns.
const mergeGain = 60

// Work returns how many coordinates the distances of all pairs of points, without cancellation, cost as much as: n²d,
// or of sparse points fewer (see SqDist64).
func DistanceWork(x Points) float64 {
	x, _ = Split(x)
	n, d := x.Dims()
	each := float64(d)
	if s, ok := x.(*CSR); ok && n > 0 {
		each = min(each, max(1, 2*mergeGain*float64(s.NNZ())/float64(n)))
	}
	return float64(n) * float64(n) * each
}

func bothSparse(a, b Points) (sa, sb *CSR, ok bool) {
	sa, first := a.(*CSR)
	sb, second := b.(*CSR)
	return sa, sb, first && second
}

// transpose writes b by columns to w (compressed sparse columns) if walking the
// nonzeros of a and b is cheaper than a dense product, and reports whether it is.
// round asks for the values rounded to float32.
func (w *Workspace) transpose(a, b *CSR, round bool) bool {
	if b.NNZ() == 0 || a.NNZ() == 0 {
		clear(buffer.Grow(&w.ptr, b.D+1))
		return true
	}
	ptr := buffer.Grow(&w.ptr, b.D+1)
	clear(ptr)
	p, q := b.Ptr[0], b.Ptr[b.N]
	for _, c := range b.Col[p:q] {
		ptr[c+1]++ // nonzeros of column c
	}
	work := 0.0
	for _, c := range a.Col[a.Ptr[0]:a.Ptr[a.N]] {
		work += float64(ptr[c+1])
	}
	if work*sparseGain >= float64(a.N)*float64(b.N)*float64(b.D) {
		return false
	}
	w.fillTranspose(b, round)
	return true
}

// fillTranspose turns the counts in w.ptr into offsets and fills w.row, w.val.
func (w *Workspace) fillTranspose(b *CSR, round bool) {
	ptr := w.ptr
	row, val := buffer.Grow(&w.row, b.NNZ()), buffer.Grow(&w.val, b.NNZ())
	var sum int32
	for c := 1; c <= b.D; c++ { // ptr[c+1] becomes the start of column c while filling
		sum, ptr[c] = sum+ptr[c], sum
	}
	for j := range b.N {
		col, v := b.Row(j)
		for k, c := range col {
			at := ptr[c+1]
			ptr[c+1]++
			row[at] = int32(j)
			if round {
				val[at] = float64(float32(v[k]))
			} else {
				val[at] = v[k]
			}
		}
	}
}

// sparseInner gives emit, for each row i of a, the inner products a_iᵀb_j with
// the nb rows of the transposed panel:
//
//	acc_j = Σ_{c: a_ic ≠ 0} a_ic · b_jc.
func (w *Workspace) sparseInner(a *CSR, nb int, round bool, emit func(i int, acc []float64)) {
	acc := buffer.Grow(&w.acc, nb)
	for i := range a.N {
		clear(acc)
		col, val := a.Row(i)
		for k, c := range col {
			v := val[k]
			if round {
				v = float64(float32(v))
			}
			p, q := w.ptr[c], w.ptr[c+1]
			bv := w.val[p:q]
			for m, j := range w.row[p:q] {
				acc[j] += v * bv[m]
			}
		}
		emit(i, acc)
	}
}
