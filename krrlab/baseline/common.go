package baseline

import (
	"context"
	"fmt"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/points"
)

// fits returns an error if need is more than the limit, 0 being none.
func fits(method, size string, need, limit int64, hint string) error {
	if limit > 0 && need > limit {
		return fmt.Errorf("baseline: %s with %s needs %s, %s is allowed; %s", method, size, accel.Bytes(need),
			accel.Bytes(limit), hint)
	}
	return nil
}

// byCols returns y as t×n: column j of y in row j.
func byCols(y *mat.Dense) []float64 {
	n, t := y.Dims()
	v := make([]float64, n*t)
	for i := range n {
		for j, x := range y.RawRowView(i) {
			v[j*n+i] = x
		}
	}
	return v
}

// fromCols is the inverse of byCols.
func fromCols(v []float64, n, t int) *mat.Dense {
	y := mat.NewDense(n, t, nil)
	for i := range n {
		row := y.RawRowView(i)
		for j := range row {
			row[j] = v[j*n+i]
		}
	}
	return y
}

const (
	panelEntries = 1 << 25 // entries of a panel of Z that is not kept: 128 MiB
	productRows  = 60      // rows of Z in a task of ZW
	productCols  = 256     // columns of Z in a task of ZᵀE
	trsmRows     = 4       // right-hand sides of one triangular solve
)

// panelRows returns how many rows of s features a panel has: a multiple of the 512 rows
// whose products are summed in float32, and of the 256 that are mapped together, so that
// the numbers do not depend on where the panels are cut.
func panelRows(s int) int { return max(512, min(panelEntries/s, 8192)&^511) }

// rows gives Z, n×s, the features of n points, by panels of rows: from where it is kept, or
// formed again in each pass.
type rows struct {
	m    feature.Map
	x    points.Points
	n, s int
	kept *points.Dense32 // n×s; nil: not kept
	buf  []float32

	forming  float64 // seconds
	progress func(stage string, done, total int)
	work     []simd.Workspace
}

func newRows(m feature.Map, x points.Points, progress func(string, int, int)) *rows {
	n, _ := x.Dims()
	_, s := m.Dims()
	return &rows{m: m, x: x, n: n, s: s, progress: progress, work: make([]simd.Workspace, accel.Threads())}
}

// each calls body with the panels of Z in order: rows from i0 on.
func (r *rows) each(ctx context.Context, stage string, body func(i0 int, z *points.Dense32) error) error {
	step := panelRows(r.s)
	for i0 := 0; i0 < r.n; i0 += step {
		i1 := min(i0+step, r.n)
		z, err := r.panel(ctx, i0, i1)
		if err != nil {
			return err
		}
		if err := body(i0, z); err != nil {
			return err
		}
		if r.progress != nil {
			r.progress(stage, i1, r.n)
		}
	}
	return nil
}

func (r *rows) panel(ctx context.Context, i0, i1 int) (*points.Dense32, error) {
	if r.kept != nil {
		return r.kept.Slice(i0, i1).(*points.Dense32), nil
	}
	start := time.Now()
	if r.buf == nil {
		r.buf = make([]float32, min(panelRows(r.s), r.n)*r.s)
	}
	z := points.NewDense32(i1-i0, r.s, r.buf[:(i1-i0)*r.s])
	err := feature.MatrixTo(ctx, z, 0, r.m, r.x.Slice(i0, i1), nil)
	if err != nil && ctx.Err() == nil && i0 > 0 {
		err = fmt.Errorf("baseline: counted from point %d on: %w", i0, err)
	}
	r.forming += time.Since(start).Seconds()
	return z, err
}

// addProduct sets e += z·v for k rows of features z, k×s: v is t×s, e t×k with stride ld.
func addProduct(ctx context.Context, z *points.Dense32, v, e []float64, ld, t int) error {
	return accel.ForEach(ctx, (z.N+productRows-1)/productRows, func(_, b int) {
		i0, i1 := b*productRows, min((b+1)*productRows, z.N)
		simd.Forward(i1-i0, z.D, z.Data[i0*z.Stride:], z.Stride, v, z.D, e[i0:], ld, t)
	})
}

// addTransposed sets g += zᵀ·e for k rows of features z, k×s: g is t×s, e t×k with stride ld.
func (r *rows) addTransposed(ctx context.Context, z *points.Dense32, g, e []float64, ld, t int) error {
	return accel.ForEach(ctx, (z.D+productCols-1)/productCols, func(worker, b int) {
		c0, c1 := b*productCols, min((b+1)*productCols, z.D)
		simd.Backward(z.N, c1-c0, z.Data[c0:], z.Stride, g[c0:], z.D, e, ld, t, &r.work[worker])
	})
}

// cholesky factors the s×s matrix a in place, lower triangle only, and returns the number,
// from 1, of the pivot that is not positive; 0 if all are.
func cholesky(a []float64, s int) (pivot int) {
	if accel.Dpotrf(s, a, s) {
		return 0
	}
	for i := range s {
		if !(a[i*s+i] > 0) {
			return i + 1
		}
	}
	return s
}

// solveRows overwrites each row b_j of b, t×s, by (LLᵀ)⁻¹b_j, a few rows at a time on the pool
// of workers: the same ones for any number of threads.
func solveRows(l []float64, s int, b []float64, t int) {
	tri := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: s, Stride: s, Data: l}
	_ = accel.ForEach(context.Background(), (t+trsmRows-1)/trsmRows, func(_, q int) {
		j := q * trsmRows
		v := blas64.General{Rows: min(trsmRows, t-j), Cols: s, Stride: s, Data: b[j*s:]}
		blas64.Trsm(blas.Right, blas.Trans, 1, tri, v)   // b ← L⁻¹b
		blas64.Trsm(blas.Right, blas.NoTrans, 1, tri, v) // b ← L⁻ᵀb
	})
}

const triangleBlock = 512 // rows or columns of L⁻¹ in a task

// triangle is the inverse of a lower triangular matrix L, s×s, to be multiplied by often:
// products are read at memory speed, which triangular solves of a few columns are not. The
// upper triangle is zero.
type triangle struct {
	s   int
	inv []float64 // L⁻¹
}

func (a *triangle) blocks() int { return (a.s + triangleBlock - 1) / triangleBlock }

// forwardBlock sets block b of dst = L⁻¹·src, both t×s with each row a column.
func (a *triangle) forwardBlock(b int, dst, src []float64, t int) {
	c0, c1 := b*triangleBlock, min((b+1)*triangleBlock, a.s)
	for j := range t {
		clear(dst[j*a.s+c0 : j*a.s+c1])
	}
	simd.Forward(c1-c0, c1, a.inv[c0*a.s:], a.s, src, a.s, dst[c0:], a.s, t) // Σ_{J≤I} (L⁻¹)_IJ src_J
}

// backwardBlock sets block b of dst = L⁻ᵀ·src.
func (a *triangle) backwardBlock(b int, dst, src []float64, t int, w *simd.Workspace) {
	c0, c1 := b*triangleBlock, min((b+1)*triangleBlock, a.s)
	for j := range t {
		clear(dst[j*a.s+c0 : j*a.s+c1])
	}
	simd.Backward(a.s-c0, c1-c0, a.inv[c0*a.s+c0:], a.s, dst[c0:], a.s, src[c0:], a.s, t, w) // Σ_{I≥J} (L⁻¹)_IJᵀ src_I
}
