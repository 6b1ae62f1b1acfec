package points

import (
	"math"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// SqDist64 sets dst[i*ld+j] = ‖a_i − b_j‖₂² for all pairs, as Σ_c (a_ic − b_jc)² in float64. Unlike
// ‖a‖²+‖b‖²−2aᵀb, which cancels, it is right to (d+3)·2⁻⁵³ of itself. The nonzeros of two sparse points are merged
// where that is cheaper than to make them dense.
func SqDist64(dst []float64, ld int, a, b Points, w *Workspace) {
	if !merge(dst, ld, a, b, func(v float64) float64 { return v * v }) {
		pairwise(dst, ld, a, b, &w.dense64, &w.pairs64, simd.Squares)
	}
}

// SumDist64 sets dst[i*ld+j] = ‖a_i − b_j‖₁ as Σ_c |a_ic − b_jc| in float64, for sparse points as SqDist64.
func SumDist64(dst []float64, ld int, a, b Points, w *Workspace) {
	if !merge(dst, ld, a, b, math.Abs) {
		pairwise(dst, ld, a, b, &w.dense64, &w.pairs64, simd.Absolutes[float64])
	}
}

// merge sets dst to the sums of term(a_ic − b_jc) over the coordinates where one of the two is not zero, and reports
// whether it did, as it does for sparse points with few nonzeros.
func merge(dst []float64, ld int, a, b Points, term func(float64) float64) bool {
	na, nb, d := pairDims(a, b, ld)
	sa, sb, ok := bothSparse(a, b)
	if !ok || na == 0 || nb == 0 || mergeGain*(sa.NNZ()*nb+sb.NNZ()*na) >= na*nb*d {
		return false
	}
	for i := range na {
		for j := range nb {
			dst[i*ld+j] = SparseSum(sa, i, sb, j, term)
		}
	}
	return true
}

// SparseSum returns the sum of term(a_ic − b_jc) over the coordinates where a_i or b_j is not zero.
func SparseSum(a *CSR, i int, b *CSR, j int, term func(float64) float64) (sum float64) {
	col, val := a.Row(i)
	other, with := b.Row(j)
	for len(col) > 0 && len(other) > 0 {
		switch {
		case col[0] < other[0]:
			sum += term(val[0])
			col, val = col[1:], val[1:]
		case col[0] > other[0]:
			sum += term(with[0])
			other, with = other[1:], with[1:]
		default:
			sum += term(val[0] - with[0])
			col, val, other, with = col[1:], val[1:], other[1:], with[1:]
		}
	}
	for _, v := range val {
		sum += term(v)
	}
	for _, v := range with {
		sum += term(v)
	}
	return sum
}

// L1Dist64 sets dst[i*ld+j] = ‖a_i − b_j‖₁ for all pairs, in float64.
//
// Dense points are subtracted coordinate by coordinate. Two sparse panels that
// share few columns walk their nonzeros, in float64:
//
//	‖x−z‖₁ = ‖x‖₁ + ‖z‖₁ + Σ_{c: x_c, z_c ≠ 0} (|x_c−z_c| − |x_c| − |z_c|).
func L1Dist64(dst []float64, ld int, a, b Points, w *Workspace) {
	l1(dst, ld, a, b, w, &w.dense64, &w.pairs64)
}

// L1Dist32 is L1Dist64 with dense points rounded to float32 and differences
// formed and added in float32.
func L1Dist32(dst []float32, ld int, a, b Points, w *Workspace) {
	l1(dst, ld, a, b, w, &w.dense32, &w.pairs32)
}

func l1[T float](dst []T, ld int, a, b Points, w *Workspace, sides *[2][]T, scratch *pairScratch[T]) {
	na, nb, _ := pairDims(a, b, ld)
	if na == 0 || nb == 0 {
		return
	}
	if sa, sb, ok := bothSparse(a, b); ok && w.transpose(sa, sb, false) {
		w.sparseL1(sa, sb, func(i int, acc []float64) { convert(dst[i*ld:i*ld+nb], acc) })
		return
	}
	pairwise(dst, ld, a, b, sides, scratch, simd.Absolutes[T])
}

// pairwise sets dst to sums over the coordinates of all pairs of points, made dense.
func pairwise[T float](dst []T, ld int, a, b Points, sides *[2][]T, scratch *pairScratch[T],
	sums func(dst *[simd.PairLanes]T, x, z []T)) {
	na, nb, d := pairDims(a, b, ld)
	if na == 0 || nb == 0 {
		return
	}
	zeroTile(dst, ld, na, nb)
	for c0, step := 0, chunkColumns(max(na, nb), d); c0 < d; c0 += step {
		c1 := min(c0+step, d)
		pairAdd(dst, ld, operand(&sides[0], a, c0, c1), operand(&sides[1], b, c0, c1), sums, scratch)
	}
}

// pairBlock is the number of columns of a block of pairAdd: that of points by coordinates stays in the second cache.
const pairBlock = 512

// pairScratch holds points by coordinates, and sums for them.
type pairScratch[T float] struct {
	z    []T
	sums [simd.PairLanes]T
}

// pairAdd adds the sums of all pairs of rows of x and z to dst, simd.PairLanes rows of z at a time; w is scratch.
func pairAdd[T float](dst []T, ld int, x, z rows[T], sums func(dst *[simd.PairLanes]T, x, z []T), w *pairScratch[T]) {
	const lanes = simd.PairLanes
	for c0 := 0; c0 < x.d; c0 += pairBlock {
		c1 := min(c0+pairBlock, x.d)
		turned := buffer.Grow(&w.z, (c1-c0)*lanes)
		for j := 0; j < z.n; j += lanes {
			for k := range lanes { // the last row repeats at the edge; its sums are dropped
				for c, v := range z.row(min(j+k, z.n-1))[c0:c1] {
					turned[c*lanes+k] = v
				}
			}
			for i := range x.n {
				sums(&w.sums, x.row(i)[c0:c1], turned)
				for k, v := range w.sums[:min(lanes, z.n-j)] {
					dst[i*ld+j+k] += v
				}
			}
		}
	}
}

// sparseL1 gives emit, for each row i of a, the distances to all rows of b,
// whose transposed panel is in w.
func (w *Workspace) sparseL1(a, b *CSR, emit func(i int, acc []float64)) {
	one := buffer.Grow(&w.one[1], b.N)
	for j := range one {
		_, val := b.Row(j)
		one[j] = sumAbs(val)
	}
	acc := buffer.Grow(&w.acc, b.N)
	for i := range a.N {
		col, val := a.Row(i)
		xi := sumAbs(val)
		for j, zj := range one {
			acc[j] = xi + zj
		}
		for k, c := range col {
			v := val[k]
			p, q := w.ptr[c], w.ptr[c+1]
			bv := w.val[p:q]
			for m, j := range w.row[p:q] {
				acc[j] += math.Abs(v-bv[m]) - math.Abs(v) - math.Abs(bv[m])
			}
		}
		for j, v := range acc {
			acc[j] = max(v, 0)
		}
		emit(i, acc)
	}
}

func sumAbs(v []float64) float64 {
	var s float64
	for _, a := range v {
		s += math.Abs(a)
	}
	return s
}
