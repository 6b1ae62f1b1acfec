package lowrank

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const (
	// diagError is the largest accepted relative difference between a diagonal entry in Diag and in Submatrix.
	diagError = 1e-5
	// indefiniteRelTol and indefiniteAbsTol limit the rounding error that is accepted: K is not positive semi-definite
	// if ‖F_i‖² > (1+indefiniteRelTol)·K_ii + indefiniteAbsTol·max_j K_jj. Larger values detect fewer indefinite
	// matrices.
	indefiniteRelTol = 1e-3
	indefiniteAbsTol = 0x1p-20 // 16 unit roundoffs (2⁻²⁴) of float32, the precision of F
)

// builder is a factor under construction, by Nystrom or RPCholesky. f and residualDiag have the rows of this rank only.
type builder struct {
	src          Source
	comm         comm.Comm
	n            int
	rows         []int     // indices of the rows of this rank
	diag         []float64 // K_ii of all points
	residualDiag []float64 // K_ii − ‖F_i‖² of the rows i of this rank, with F in float32
	trace        float64
	f            *points.Dense32 // len(rows)×rank
	block        int             // number of columns of K that are formed together
	entryError   float64         // ε of Source.EntryError; in Extend the larger ε of the earlier and the new entries
	// minRelativeError is the relativeError (q in certify.go) of the factor that Extend extends, and 0 in other cases.
	minRelativeError float64
	formedColumns    int       // number of columns of K formed by all steps so far
	roundingSq       []float64 // for each panel of rows, ‖δ‖_F² of the rounding δ of F to float32
	lower            []float64 // lower triangular T with TTᵀ = W+νD, rank×rank; nil if it is not stored
}

// newBuilder checks the diagonal of K and allocates F with the given rank. It returns an error if the rank is not in
// [1, n], a diagonal entry is negative or not finite, or the trace is 0 or not finite. It panics if src.Diag or
// src.EntryError is invalid.
func newBuilder(src Source, rank int, options *Options) (*builder, error) {
	n := src.Dim()
	if err := checkRank(rank, n); err != nil {
		return nil, err
	}
	b := &builder{src: src, comm: comm.OrAlone(options.Comm), n: n, block: options.Block, diag: src.Diag(),
		entryError: src.EntryError()}
	if !(b.entryError >= 0) {
		panic(fmt.Sprintf("lowrank: columns with an error of %v", b.entryError))
	}
	if len(b.diag) != n {
		panic(fmt.Sprintf("lowrank: a diagonal of %d entries for a matrix of order %d", len(b.diag), n))
	}
	for i, v := range b.diag {
		if !(v >= 0) || math.IsInf(v, 1) {
			return nil, fmt.Errorf("lowrank: diagonal entry %d is %v, want a number ≥ 0", i, v)
		}
		b.trace += v
	}
	if b.trace == 0 {
		return nil, fmt.Errorf("lowrank: the diagonal of K, of order %d, is zero: there is nothing to factor", n)
	}
	if math.IsInf(b.trace, 1) {
		return nil, fmt.Errorf("lowrank: the trace of K, of order %d, is not finite", n)
	}
	lo, hi := comm.RowRange(n, precond.RankRows, b.comm.Rank(), b.comm.Size())
	b.residualDiag = slices.Clone(b.diag[lo:hi])
	for i := lo; i < hi; i++ {
		b.rows = append(b.rows, i)
	}
	b.roundingSq = make([]float64, (hi-lo+panelRows-1)/panelRows)
	b.f = points.NewDense32(hi-lo, rank, nil)
	return b, nil
}

// checkRank returns an error unless 1 ≤ rank ≤ n.
func checkRank(rank, n int) error {
	if rank < 1 || rank > n {
		return fmt.Errorf("lowrank: rank %d of a matrix of order %d, want 1 to %d", rank, n, n)
	}
	return nil
}

// formBlock sets c, len(rows)×len(columns), to K(rows, columns). It returns an error if an entry is not finite, if a
// diagonal entry differs from Diag by more than diagError, or if the Source fails.
func (b *builder) formBlock(ctx context.Context, rows, columns []int, c blas64.General) error {
	if err := b.src.Submatrix(ctx, rows, columns, c); err != nil {
		return err
	}
	panelErrors := make([]error, (len(rows)+panelRows-1)/panelRows)
	err := accel.ForEachBlock(ctx, len(rows), panelRows, func(_, lo, hi int) {
		for k := lo; k < hi; k++ {
			i := rows[k]
			for j, v := range c.Data[k*c.Stride : k*c.Stride+c.Cols] {
				if v-v != 0 {
					panelErrors[lo/panelRows] = fmt.Errorf("lowrank: K(%d, %d) is %v", i, columns[j], v)
				}
				if diagonal := b.diag[i]; i == columns[j] && !(math.Abs(v-diagonal) <= diagError*diagonal) {
					panelErrors[lo/panelRows] = fmt.Errorf("lowrank: K(%d, %d) is %v in its column and %v on the "+
						"diagonal", i, i, v, diagonal)
				}
			}
		}
	})
	return cmp.Or(append(panelErrors, err)...)
}

// addInRankOrder calls add on one rank after the other and sends x to all ranks after each call. add adds the terms of
// its rank to x. Since the ranks have consecutive rows, the terms are added in the order of the rows, for any number of
// ranks.
func addInRankOrder(ctx context.Context, c comm.Comm, x []float64, add func()) error {
	for rank := range c.Size() {
		if rank == c.Rank() {
			add()
		}
		if err := comm.BroadcastFloats(ctx, c, x, rank); err != nil {
			return err
		}
	}
	return nil
}

// roundRow sets dst to src rounded to float32, subtracts the sum of squares of dst from residualDiag[k], and returns
// the sum of squares of the rounding errors. k is an index in b.rows.
func (b *builder) roundRow(k int, dst []float32, src []float64) (errorSq float64) {
	normSq, errorSq := round(dst, src)
	b.residualDiag[k] -= normSq
	return errorSq
}

// round sets dst to src rounded to float32. It returns the sums of squares of dst and of the rounding errors.
func round(dst []float32, src []float64) (normSq, errorSq float64) {
	for j, v := range src {
		dst[j] = float32(v)
		rounded := float64(dst[j])
		normSq += rounded * rounded
		errorSq += (v - rounded) * (v - rounded)
	}
	return normSq, errorSq
}

// forEachPanel calls body for each panel of panelRows rows of F from lo to hi-1, in parallel. body returns the sum of
// squares of the rounding errors of its rows.
func (b *builder) forEachPanel(ctx context.Context, lo, hi int, body func(worker, lo, hi int) float64) error {
	return accel.ForEachBlock(ctx, hi-lo, panelRows, func(worker, start, end int) {
		b.roundingSq[(lo+start)/panelRows] += body(worker, lo+start, lo+end)
	})
}

// checkRows returns an error if a row of F overflows float32, or has a norm that is too large for a positive
// semi-definite K.
func (b *builder) checkRows() error {
	floor := indefiniteAbsTol * slices.Max(b.diag)
	for k, i := range b.rows {
		v := b.residualDiag[k]
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("lowrank: row %d of F does not fit float32; the diagonal entry of K is %.3g", i,
				b.diag[i])
		}
		if v < -indefiniteRelTol*b.diag[i]-floor {
			return fmt.Errorf("lowrank: K is not positive semi-definite: its diagonal entry %d is %.6g, that of K̂ "+
				"is %.6g", i, b.diag[i], b.diag[i]-v)
		}
	}
	return nil
}

// finish returns the certified Factor. F consists of the first len(landmarks) columns of p.f; shift is Factor.Shift.
func (b *builder) finish(ctx context.Context, method string, landmarks []int, shift float64) (*Factor, error) {
	r, stride := len(landmarks), b.f.D
	factor := &Factor{Method: method, N: b.n, F: leadingColumns(b.f, r), Landmarks: landmarks, RequestedRank: stride,
		Columns: b.formedColumns, Trace: b.trace, Shift: shift}
	if b.lower != nil && b.comm.Size() == 1 { // Extend is for one process
		for i := range r {
			copy(b.lower[i*r:(i+1)*r], b.lower[i*stride:])
		}
		if factor.lower = b.lower; r < stride {
			factor.lower = slices.Clone(b.lower[:r*r])
		}
		factor.residualDiag = b.residualDiag
	}
	return factor, b.certify(ctx, factor)
}

// leadingColumns returns the first r columns of f without gaps between the rows. It overwrites f, and copies the result
// if that frees at least half of the memory.
func leadingColumns(f *points.Dense32, r int) *points.Dense32 {
	if r == f.D {
		return f
	}
	for i := range f.N {
		copy(f.Data[i*r:(i+1)*r], f.Data[i*f.Stride:i*f.Stride+r])
	}
	data := f.Data[: f.N*r : f.N*r]
	if 2*r <= f.D {
		data = slices.Clone(data)
	}
	return points.NewDense32(f.N, r, data)
}
