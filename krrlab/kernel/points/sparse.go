package points

import "github.com/krrlab/lab/krrlab/internal/buffer"

// sparseProductCost is the cost of one multiply-add of a sparse product in units of a multiply-add of a dense product.
// Two panels are multiplied by iterating over their nonzeros if
//
//	Σ_c nnzA(c)·nnzB(c) · sparseProductCost < n_a·n_b·d.
//
// Measured: a sparse multiply-add takes 1.0–1.6 ns; a dense one in float32 takes 0.015–0.02 ns with OpenBLAS and about
// 0.15 ns with gonum's BLAS. The value 50 suits OpenBLAS. The constant does not depend on the BLAS in use, so that the
// results do not depend on this choice.
const sparseProductCost = 50

// mergeCost is the cost of one step of mergeSparse, about 5 ns, in units of a subtraction of a dense distance, about
// 0.08 ns with AVX-512.
const mergeCost = 60

// DistanceWork returns the cost of computing the distances of all pairs of points without cancellation, in coordinates:
// n²d for dense points, and less for sparse points (see SqDist64).
func DistanceWork(x Points) float64 {
	x, _ = SplitFactors(x)
	n, d := x.Dims()
	perPair := float64(d)
	// The number of steps to merge two points is the number of nonzeros of both together.
	if s, ok := x.(*CSR); ok && n > 0 {
		perPair = min(perPair, max(1, 2*mergeCost*float64(s.NNZ())/float64(n)))
	}
	return float64(n) * float64(n) * perPair
}

// asCSRPair returns a and b as sparse points; ok is false unless both are.
func asCSRPair(a, b Points) (sa, sb *CSR, ok bool) {
	sa, aSparse := a.(*CSR)
	sb, bSparse := b.(*CSR)
	return sa, sb, aSparse && bSparse
}

// rounding selects whether the values of sparse points are rounded to float32 before they are multiplied.
type rounding bool

const (
	exactValues   rounding = false
	roundedValues rounding = true
)

// transposeIfCheap writes b by columns (compressed sparse columns) to w if iterating over the nonzeros of a and b is
// cheaper than a dense product, and reports whether this is the case. If round is roundedValues, the values are rounded
// to float32.
func (w *Workspace) transposeIfCheap(a, b *CSR, round rounding) bool {
	if b.NNZ() == 0 || a.NNZ() == 0 { // all products are 0, as with an empty panel
		clear(buffer.Grow(&w.ptr, b.D+1))
		return true
	}
	ptr := buffer.Grow(&w.ptr, b.D+1)
	clear(ptr)
	for _, c := range b.Col[b.Ptr[0]:b.Ptr[b.N]] {
		ptr[c+1]++ // nonzeros of column c
	}
	work := 0.0
	for _, c := range a.Col[a.Ptr[0]:a.Ptr[a.N]] {
		work += float64(ptr[c+1])
	}
	if work*sparseProductCost >= float64(a.N)*float64(b.N)*float64(b.D) {
		return false
	}
	w.fillTranspose(b, round)
	return true
}

// fillTranspose turns the counts in w.ptr into offsets and fills w.row and w.val.
func (w *Workspace) fillTranspose(b *CSR, round rounding) {
	ptr := w.ptr
	row, val := buffer.Grow(&w.row, b.NNZ()), buffer.Grow(&w.val, b.NNZ())
	var sum int32
	for c := 1; c <= b.D; c++ { // while filling, ptr[c+1] is the next free index of column c
		sum, ptr[c] = sum+ptr[c], sum
	}
	for j := range b.N {
		col, v := b.Row(j)
		for k, c := range col {
			entry := ptr[c+1]
			ptr[c+1]++
			row[entry] = int32(j)
			if round {
				val[entry] = float64(float32(v[k]))
			} else {
				val[entry] = v[k]
			}
		}
	}
}

// sparseInner calls emit, for each row i of a, with the inner products a_iᵀb_j for the nb points b_j that
// transposeIfCheap has written to w:
//
//	acc_j = Σ_{c: a_ic ≠ 0} a_ic · b_jc.
func (w *Workspace) sparseInner(a *CSR, nb int, round rounding, emit func(i int, acc []float64)) {
	acc := buffer.Grow(&w.acc, nb)
	for i := range a.N {
		clear(acc)
		col, val := a.Row(i)
		for k, c := range col {
			v := val[k]
			if round {
				v = float64(float32(v))
			}
			begin, end := w.ptr[c], w.ptr[c+1]
			column := w.val[begin:end]
			for entry, j := range w.row[begin:end] {
				acc[j] += v * column[entry]
			}
		}
		emit(i, acc)
	}
}
