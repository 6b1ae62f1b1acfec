package points

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// SqDist64 sets dst[i*ld+j] = ‖a_i − b_j‖₂² for all pairs, as Σ_c (a_ic − b_jc)² in float64. Its relative error is at
// most (d+3)·2⁻⁵³, whereas ‖a‖²+‖b‖²−2aᵀb suffers from cancellation. The nonzeros of two sparse points are merged if
// that is cheaper than converting the points to dense ones.
func SqDist64(dst []float64, ld int, a, b Points, w *Workspace) {
	if !mergeSparse(dst, ld, a, b, func(v float64) float64 { return v * v }) {
		pairwiseSums(dst, ld, a, b, &w.dense64, &w.pairs64, simd.SumSquaredDifferences)
	}
}

// AccurateL1Dist64 sets dst[i*ld+j] = ‖a_i − b_j‖₁ as Σ_c |a_ic − b_jc| in float64. Sparse points are handled as in
// SqDist64.
func AccurateL1Dist64(dst []float64, ld int, a, b Points, w *Workspace) {
	if !mergeSparse(dst, ld, a, b, math.Abs) {
		pairwiseSums(dst, ld, a, b, &w.dense64, &w.pairs64, simd.SumAbsoluteDifferences[float64])
	}
}

// mergeSparse sets dst to the sums of term(a_ic − b_jc) over the coordinates in which a_i or b_j is not zero. It does
// so only for sparse points with few nonzeros, and reports whether it did. term(0) must be 0.
func mergeSparse(dst []float64, ld int, a, b Points, term func(float64) float64) bool {
	na, nb, d := pairDims(a, b, ld)
	sa, sb, ok := asCSRPair(a, b)
	if !ok || na == 0 || nb == 0 || mergeCost*(sa.NNZ()*nb+sb.NNZ()*na) >= na*nb*d {
		return false
	}
	for i := range na {
		for j := range nb {
			dst[i*ld+j] = SparseSum(sa, i, sb, j, term)
		}
	}
	return true
}

// SparseSum returns the sum of term(a_ic − b_jc) over the coordinates c in which point i of a or point j of b is not
// zero.
func SparseSum(a *CSR, i int, b *CSR, j int, term func(float64) float64) (sum float64) {
	col, val := a.Row(i)
	otherCol, otherVal := b.Row(j)
	for len(col) > 0 && len(otherCol) > 0 {
		switch {
		case col[0] < otherCol[0]:
			sum += term(val[0])
			col, val = col[1:], val[1:]
		case col[0] > otherCol[0]:
			sum += term(otherVal[0])
			otherCol, otherVal = otherCol[1:], otherVal[1:]
		default:
			sum += term(val[0] - otherVal[0])
			col, val, otherCol, otherVal = col[1:], val[1:], otherCol[1:], otherVal[1:]
		}
	}
	for _, v := range val {
		sum += term(v)
	}
	for _, v := range otherVal {
		sum += term(v)
	}
	return sum
}

// L1Dist64 sets dst[i*ld+j] = ‖a_i − b_j‖₁ for all pairs, in float64.
//
// Dense points are subtracted coordinate by coordinate. For two sparse panels that share few columns, L1Dist64 iterates
// over their nonzeros in float64:
//
//	‖x−z‖₁ = ‖x‖₁ + ‖z‖₁ + Σ_{c: x_c, z_c ≠ 0} (|x_c−z_c| − |x_c| − |z_c|).
func L1Dist64(dst []float64, ld int, a, b Points, w *Workspace) {
	l1Distances(dst, ld, a, b, w, &w.dense64, &w.pairs64)
}

// L1Dist32 is L1Dist64 with dense points rounded to float32 and differences formed and added in float32.
func L1Dist32(dst []float32, ld int, a, b Points, w *Workspace) {
	l1Distances(dst, ld, a, b, w, &w.dense32, &w.pairs32)
}

// l1Distances implements L1Dist64 and L1Dist32.
func l1Distances[T realNumber](dst []T, ld int, a, b Points, w *Workspace, buffers *[2][]T, scratch *pairScratch[T]) {
	na, nb, _ := pairDims(a, b, ld)
	if na == 0 || nb == 0 {
		return
	}
	if sa, sb, ok := asCSRPair(a, b); ok && w.transposeIfCheap(sa, sb, exactValues) {
		w.sparseL1(sa, sb, func(i int, acc []float64) { convert(dst[i*ld:i*ld+nb], acc) })
		return
	}
	pairwiseSums(dst, ld, a, b, buffers, scratch, simd.SumAbsoluteDifferences[T])
}

// pairwiseSums sets dst to a sum over the coordinates for all pairs of points, which it converts to dense ones in
// blocks of columns. sums computes these sums for one point x and simd.PairLanes points z, whose coordinates are
// interleaved: z[c*simd.PairLanes+k] is coordinate c of point k.
func pairwiseSums[T realNumber](dst []T, ld int, a, b Points, buffers *[2][]T, scratch *pairScratch[T],
	sums func(dst *[simd.PairLanes]T, x, z []T)) {
	na, nb, d := pairDims(a, b, ld)
	if na == 0 || nb == 0 {
		return
	}
	zeroTile(dst, ld, na, nb)
	for c0, step := 0, chunkColumns(max(na, nb), d); c0 < d; c0 += step {
		c1 := min(c0+step, d)
		addPairSums(dst, ld, operand(&buffers[0], a, c0, c1), operand(&buffers[1], b, c0, c1), sums, scratch)
	}
}

// pairBlockColumns is the number of columns that addPairSums handles at once. A transposed block of points then fits
// the second-level cache.
const pairBlockColumns = 512

// pairScratch is the scratch memory of addPairSums.
type pairScratch[T realNumber] struct {
	z    []T               // a block of points, transposed
	sums [simd.PairLanes]T // sums for one point and the points of the block
}

// addPairSums adds to dst the sums for all pairs of rows of x and z. It handles simd.PairLanes rows of z at a time.
func addPairSums[T realNumber](dst []T, ld int, x, z columnBlock[T], sums func(dst *[simd.PairLanes]T, x, z []T),
	scratch *pairScratch[T]) {
	const lanes = simd.PairLanes
	for c0 := 0; c0 < x.d; c0 += pairBlockColumns {
		c1 := min(c0+pairBlockColumns, x.d)
		transposed := buffer.Grow(&scratch.z, (c1-c0)*lanes)
		for j := 0; j < z.n; j += lanes {
			for lane := range lanes { // at the end the last row is repeated, and its sums are ignored
				for c, v := range z.row(min(j+lane, z.n-1))[c0:c1] {
					transposed[c*lanes+lane] = v
				}
			}
			for i := range x.n {
				sums(&scratch.sums, x.row(i)[c0:c1], transposed)
				for lane, v := range scratch.sums[:min(lanes, z.n-j)] {
					dst[i*ld+j+lane] += v
				}
			}
		}
	}
}

// sparseL1 calls emit, for each row i of a, with the distances ‖a_i − b_j‖₁ to all rows of b, whose transposed panel is
// in w. See L1Dist64 for the formula.
func (w *Workspace) sparseL1(a, b *CSR, emit func(i int, acc []float64)) {
	bNorms := buffer.Grow(&w.absSums, b.N)
	for j := range bNorms {
		_, val := b.Row(j)
		bNorms[j] = floats.Norm(val, 1)
	}
	acc := buffer.Grow(&w.acc, b.N)
	for i := range a.N {
		col, val := a.Row(i)
		aNorm := floats.Norm(val, 1)
		for j, bNorm := range bNorms {
			acc[j] = aNorm + bNorm
		}
		for k, c := range col {
			v := val[k]
			start, end := w.ptr[c], w.ptr[c+1]
			bVal := w.val[start:end]
			for entry, j := range w.row[start:end] {
				acc[j] += math.Abs(v-bVal[entry]) - math.Abs(v) - math.Abs(bVal[entry])
			}
		}
		for j, v := range acc {
			acc[j] = max(v, 0)
		}
		emit(i, acc)
	}
}
