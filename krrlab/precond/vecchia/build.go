package vecchia

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// builder is the state of New. Its comments use the symbols of the package documentation: R = K − FFᵀ is the residual
// matrix, and J consists of the neighbors of a point and the point itself, which comes last.
type builder struct {
	*Inverse
	matrix      *gram.Matrix    // K+λI as stored
	exact       *gram.Matrix    // K+λI, recomputed in float64
	f           *points.Dense32 // F, nil for none; at first the rows of this rank, after gatherF all rows
	options     *Options
	comm        comm.Comm
	candidates  *gram.NeighborLists // candidates for the neighbors of each point; nil if k = 0
	diag        []float64           // K_ii by point
	shiftedDiag []float64           // ωR_ii+λ by point
	normsF2     []float64           // ‖F(i, :)‖² by point
	rowOf       []int32             // rowOf[i] is the row of G of point i
	lo, hi      int                 // this rank has rows lo to hi-1 of F, and computes those rows of G and H
	original    *Inverse            // in Extend the M to extend, whose rows of G and H are copied; otherwise nil
}

// originalRows returns the number of rows of G and H that are copied from original.
func (b *builder) originalRows() int {
	if b.original == nil {
		return 0
	}
	return b.original.n
}

// gatherF replaces the rows of F of this rank by all rows of F.
func (b *builder) gatherF(ctx context.Context) error {
	f := b.f
	if f == nil || b.comm.Size() == 1 {
		return nil
	}
	b.f = points.NewDense32(b.n, f.D, nil)
	copy(b.f.Data[b.lo*f.D:], f.Data)
	return gatherRows(ctx, b, b.f.Data, func(i int) int64 { return int64(i * f.D) })
}

// gatherRows completes data, an array of n rows, on every rank: each rank broadcasts its own rows. Row i begins at
// data[offset(i)].
func gatherRows[T int32 | float32](ctx context.Context, b *builder, data []T, offset func(i int) int64) error {
	for rank := range b.comm.Size() {
		lo, hi := comm.RowRange(b.n, precond.RankRows, rank, b.comm.Size())
		rows := data[offset(lo):offset(hi)]
		err := b.comm.Broadcast(ctx, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rows))), 4*len(rows)), rank)
		if err != nil {
			return err
		}
	}
	return nil
}

// candidateFactor determines the number of candidates with a factor F: the k neighbors in R are chosen among
// candidateFactor·k candidates, the nearest points in K. A larger value may find better neighbors, and costs memory and
// time in proportion.
const candidateFactor = 3

// findCandidates sets b.candidates, unless k = 0.
func (b *builder) findCandidates(ctx context.Context) (err error) {
	if b.k == 0 {
		return nil
	}
	count := b.k
	if b.f != nil {
		count = min(candidateFactor*count, b.n-1)
	}
	b.candidates, err = b.matrix.NeighborsFrom(ctx, b.options.Order, count, b.originalRows())
	return err
}

// buildRows is the number of rows of G in one unit of work. Larger units balance threads less evenly.
const buildRows = 32

// worker holds the scratch memory of one goroutine.
type worker struct {
	points     []int     // the points of J; the last one is the point of the row that is computed
	rows       []int     // the rows of G of these points
	scores     []float64 // absolute value of the correlation in R with each candidate, by which neighbors are chosen
	ranking    []int     // positions of candidates, the highest score first
	a          []float64 // (ωR+λI)_JJ, overwritten by its Cholesky factor U
	z          []float64 // negated columns of U
	g          []float64 // row of G
	h          []float64 // row of H
	f          []float64 // F(J, :)
	candidateF []float32 // rows of F at the candidates
	rowF       []float64 // row of F at one point
	inner      []float64 // inner products of rowF with other rows of F
	block      gram.SubmatrixWorkspace
	simd       simd.Workspace
}

// computeG sets G, Gᵀ and this rank's rows of H.
func (b *builder) computeG(ctx context.Context) error {
	b.computeDiagonals()
	b.allocateG()
	if b.f != nil {
		b.h = points.NewDense32(b.hi-b.lo, b.f.D, nil)
	}
	if b.original != nil {
		copy(b.g.col, b.original.g.col)
		copy(b.g.value, b.original.g.value)
		if b.h != nil {
			copy(b.h.Data, b.original.h.Data)
		}
	}
	firstRow := max(b.lo, b.originalRows())
	workers := make([]worker, accel.Threads())
	var mu sync.Mutex
	firstFailedRow := b.n // first row of G whose (ωR+λI)_JJ is not positive definite
	err := accel.ForEachBlock(ctx, b.hi-firstRow, buildRows, func(workerID, lo, hi int) {
		for i := firstRow + lo; i < firstRow+hi; i++ {
			if !b.computeRow(&workers[workerID], i) {
				mu.Lock()
				firstFailedRow = min(firstFailedRow, i)
				mu.Unlock()
			}
		}
	})
	if err == nil && firstFailedRow < b.n {
		err = fmt.Errorf("vecchia: K+λI among point %d and its neighbors is not positive definite: take a larger λ",
			b.pointOf[firstFailedRow])
	}
	if err = comm.Agree(ctx, b.comm, err); err != nil {
		return err
	}
	offset := func(i int) int64 { return b.g.start[i] }
	if err := gatherRows(ctx, b, b.g.col, offset); err != nil {
		return err
	}
	if err := gatherRows(ctx, b, b.g.value, offset); err != nil {
		return err
	}
	b.gt = b.g.transposed()
	return nil
}

// computeDiagonals sets diag, normsF2 and, for the current damping, shiftedDiag.
func (b *builder) computeDiagonals() {
	b.diag = b.matrix.Diag()
	b.shiftedDiag, b.normsF2 = make([]float64, b.n), make([]float64, b.n)
	for i, v := range b.diag {
		if b.f != nil {
			for _, u := range b.f.Row(i) {
				b.normsF2[i] += float64(u) * float64(u)
			}
		}
		b.shiftedDiag[i] = b.damping*max(0, v-b.normsF2[i]) + b.matrix.Lambda()
	}
}

// innerProducts returns the inner products of row i of F with the n rows of f, or zeros if f is nil. The result is a
// part of w, and valid until the next call with w.
func (b *builder) innerProducts(w *worker, i, n int, f *points.Dense32) []float64 {
	products := buffer.Grow(&w.inner, n)
	clear(products)
	if f != nil {
		row := buffer.Grow(&w.rowF, f.D)
		points.Widen(row, b.f.Row(i))
		simd.AddProduct(f.Data, f.Stride, blas64.General{Rows: 1, Cols: f.D, Stride: f.D, Data: row},
			blas64.General{Rows: 1, Cols: n, Stride: n, Data: products})
	}
	return products
}

// allocateG sets rowOf, and allocates G with the number of entries that each row will have.
func (b *builder) allocateG() {
	start := make([]int64, b.n+1)
	b.rowOf = make([]int32, b.n)
	for row, i := range b.pointOf {
		start[row+1], b.rowOf[i] = 1, int32(row)
		switch {
		case row < b.originalRows():
			start[row+1] = b.original.g.start[row+1] - b.original.g.start[row]
		case b.candidates != nil:
			index, _ := b.candidates.Of(i)
			start[row+1] += int64(min(len(index), b.k))
		}
	}
	for i := range b.n {
		start[i+1] += start[i]
	}
	b.g = csr{start, make([]int32, start[b.n]), make([]float32, start[b.n])}
}

// computeRow computes row i of G and of H. It returns false if (ωR+λI)_JJ is not positive definite.
func (b *builder) computeRow(w *worker, i int) bool {
	cols, values := b.g.row(i)
	b.conditioningSet(w, i, len(cols)-1)
	k := len(w.points)
	a, ld := b.localMatrix(w, w.points)
	if !w.cholesky(k) {
		return false
	}

	// The row of G is the solution g of Ug = e_k; it is z/√z_k for the solution z of UᵀUz = e_k.
	g := buffer.Grow(&w.g, k)
	g[k-1] = 1 / a[(k-1)*ld+k-1]
	for r := k - 2; r >= 0; r-- {
		g[r] = -floats.Dot(a[r*ld+r+1:r*ld+k], g[r+1:]) / a[r*ld+r]
	}
	for c, j := range w.rows {
		cols[c], values[c] = int32(j), float32(g[c])
	}

	if b.h != nil { // row i of H is gᵀF(J, :)
		r := b.f.D
		h := buffer.Grow(&w.h, r)
		clear(h)
		for c := range w.points {
			floats.AddScaled(h, float64(values[c]), w.f[c*r:(c+1)*r])
		}
		for c, v := range h {
			b.h.Row(i - b.lo)[c] = float32(v)
		}
	}
	return true
}

// conditioningSet sets w.rows to the rows of G of the k neighbors of the point of a row, in ascending order, followed
// by the row itself, and w.points to their points.
func (b *builder) conditioningSet(w *worker, row, k int) {
	w.rows, w.points = w.rows[:0], w.points[:0]
	if k > 0 {
		i := b.pointOf[row]
		index, value := b.candidates.Of(i)
		if b.f != nil && len(index) > k {
			index = b.nearestInResidual(w, i, k, index, value)
		}
		for _, j := range index[:k] {
			w.rows = append(w.rows, int(b.rowOf[j]))
		}
		slices.Sort(w.rows)
	}
	w.rows = append(w.rows, row)
	for _, j := range w.rows {
		w.points = append(w.points, b.pointOf[j])
	}
}

// nearestInResidual returns the k candidates j of point i with the largest |R_ij|/√((ωR_ii+λ)(ωR_jj+λ)), in descending
// order; ties are in the order of the candidates. index and value are the candidates and their K_ij/√(K_ii·K_jj).
func (b *builder) nearestInResidual(w *worker, i, k int, index []int32, value []float32) []int32 {
	scores, rank := buffer.Grow(&w.scores, len(index)), b.f.D
	f := points.NewDense32(len(index), rank, buffer.Grow(&w.candidateF, len(index)*rank))
	for c, j := range index {
		copy(f.Row(c), b.f.Row(int(j)))
	}
	inner := b.innerProducts(w, i, f.N, f)
	for c, j := range index {
		residual := float64(value[c])*math.Sqrt(b.diag[i]*b.diag[j]) - inner[c]
		scores[c] = math.Abs(residual) / math.Sqrt(b.shiftedDiag[i]*b.shiftedDiag[j])
	}
	ranking := buffer.Grow(&w.ranking, len(index))
	for c := range ranking {
		ranking[c] = c
	}
	slices.SortFunc(ranking, func(x, y int) int { return cmp.Or(cmp.Compare(scores[y], scores[x]), x-y) })
	neighbors := make([]int32, k)
	for c := range neighbors {
		neighbors[c] = index[ranking[c]]
	}
	return neighbors
}

// localMatrix sets w.a to the upper triangle of (ωR+λI)(J, J) and w.f to F(J, :), where idx lists the points J. It
// returns w.a and its row stride. The rounding of F to float32 causes an error of at most 2⁻²³‖F_J‖_F² in the 2-norm of
// the computed R(J, J). This bound is added to its diagonal, so that it remains positive semi-definite.
func (b *builder) localMatrix(w *worker, idx []int) (a []float64, ld int) {
	k := len(idx)
	ld = stride(k)
	a = buffer.Grow(&w.a, k*ld)
	clear(a) // cholesky also reads the padding beyond column k
	b.exact.PrincipalSubmatrix(a, ld, idx, &w.block)
	var slack float64
	if b.f != nil {
		r := b.f.D
		f := buffer.Grow(&w.f, k*r)
		for c, j := range idx {
			points.Widen(f[c*r:(c+1)*r], b.f.Row(j))
			slack += 0x1p-23 * b.normsF2[j]
		}
		blas64.Syrk(blas.NoTrans, -1, blas64.General{Rows: k, Cols: r, Stride: r, Data: f}, 1,
			blas64.Symmetric{Uplo: blas.Upper, N: k, Stride: ld, Data: a})
	}
	for c := range idx {
		row := a[c*ld+c : c*ld+k]
		if b.damping != 1 {
			floats.Scale(b.damping, row)
		}
		row[0] += b.damping*slack + b.matrix.Lambda()
	}
	return a, ld
}

// simdColumns is the largest number of columns that the loops of package simd process together. Rows of local matrices
// are padded to a multiple of it.
const simdColumns = 16

// stride returns the row stride of a local matrix of order k.
func stride(k int) int { return (k + simdColumns - 1) &^ (simdColumns - 1) }

// panelHeight is the number of rows of a Cholesky factor that are computed together.
const panelHeight = 4

// cholesky overwrites the upper triangle of w.a, of order k, by its Cholesky factor U, A = UᵀU. It returns false if w.a
// is not positive definite. It computes a panel J of panelHeight rows at a time: one matrix product subtracts the
// contribution of all rows above,
//
//	A(J, j:) − U(:j, J)ᵀ·U(:j, j:),
//
// and the rows of J are then eliminated among themselves.
func (w *worker) cholesky(k int) bool {
	a, ld, z := w.a, stride(k), buffer.Grow(&w.z, panelHeight*k)
	for j := 0; j < k; j += panelHeight {
		t := min(panelHeight, k-j)
		for r := range j {
			for c, v := range a[r*ld+j : r*ld+j+t] {
				z[c*j+r] = -v
			}
		}
		aligned := j &^ (simdColumns - 1)
		simd.AddTransposeProduct(a[aligned:], ld, blas64.General{Rows: t, Cols: ld - aligned, Stride: ld,
			Data: a[j*ld+aligned:]},
			blas64.General{Rows: t, Cols: j, Stride: j, Data: z}, &w.simd)
		for r := j; r < j+t; r++ {
			row := a[r*ld+r : r*ld+k]
			for c := j; c < r; c++ {
				floats.AddScaled(row, -a[c*ld+r], a[c*ld+r:c*ld+k])
			}
			pivot := math.Sqrt(row[0])
			if !(pivot > 0) {
				return false
			}
			floats.Scale(1/pivot, row)
		}
	}
	return true
}

// computeW sets W = I+HHᵀ, unless there is no F.
func (b *builder) computeW(ctx context.Context) (err error) {
	if b.f != nil {
		b.w, err = precond.New(ctx, b.h, 1, &precond.Options{Form: precond.FormLInv, Comm: b.comm})
	}
	return err
}
