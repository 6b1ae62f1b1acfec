package precond

import (
	"cmp"
	"context"
	"math"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Parameters of the measurement of the error E of ZᵀZ. More columns or steps give a tighter bound and cost more
// products with ZᵀZ. The sum of squares of measureColumns standard normal numbers is below measureQuantile with
// probability 1e-6.
const (
	measureColumns  = 8
	measureSteps    = 4
	measureQuantile = 0.14

	// ErrorSumsPerFeature is the number of values per feature that ranks add to measure E. If they share ZᵀZ, they add
	// twice as many.
	ErrorSumsPerFeature = measureColumns * measureSteps
)

// gramian is ZᵀZ, replicated or distributed over the ranks, and its trace.
type gramian struct {
	*accel.DistributedMatrix
	trace float64
}

// localGram returns the ZᵀZ that is stored in w.factor.
func (w *Woodbury) localGram() gramian {
	gram := gramian{DistributedMatrix: accel.WrapMatrix(w.s, w.factor, w.s)}
	for j := range w.s {
		gram.trace += w.factor[j*w.s+j]
	}
	return gram
}

// fastGram returns ZᵀZ. It uses float32 products if the prediction and then the measured bound of ‖E‖₂, where E is
// their error, are at most λ_p/10, and float64 products otherwise.
func (w *Woodbury) fastGram(ctx context.Context) (gramian, error) {
	predicted, err := w.distribution.predictedError(ctx, w.z)
	if err != nil {
		return gramian{}, err
	}
	if predicted <= w.lambdaP/10 {
		gram, err := w.gram(ctx, fastProducts)
		if err != nil {
			return gram, err
		}
		measured, err := measuredError(ctx, w.distribution.comm, w.z, gram)
		if err != nil || measured <= w.lambdaP/10 {
			return gram, err
		}
	}
	return w.gram(ctx, exactProducts)
}

// gram returns ZᵀZ. It is distributed if the ranks share the factor, and otherwise stored in w.factor.
func (w *Woodbury) gram(ctx context.Context, p precision) (gram gramian, err error) {
	d := w.distribution
	if RanksPerFactor(w.form, w.n, w.s, 1, d.comm.Size()) > 1 {
		gram.DistributedMatrix = d.newShared(ctx, w.s)
	} else {
		w.factor = make([]float64, w.s*w.s)
		gram.DistributedMatrix = accel.WrapMatrix(w.s, w.factor, w.s)
	}
	gram.trace, err = d.gram(ctx, w.z, 0, p, gram.DistributedMatrix)
	return gram, err
}

// measuredError returns an upper bound of ‖E‖₂, E = C−ZᵀZ, where the lower triangle C was computed by float32 products
// and ZᵀZ is over the rows of all ranks. No model of rounding errors is valid for all Z: the columns of a landmark
// factor differ in norm by orders of magnitude, and the errors of sums of similar numbers have the same sign. Therefore
// E is multiplied by a random matrix V with t = measureColumns columns. With the leading eigenvector u of E, ‖EᵏV‖_F ≥
// ‖E‖₂ᵏ‖uᵀV‖₂, and
//
//	‖E‖₂ ≤ (‖EᵏV‖_F/√x)^{1/k},  x = measureQuantile,
//
// except with probability 1e-6. For independent errors the bound is about three times ‖E‖₂. Each of the k =
// measureSteps steps takes 4nst flops.
func measuredError(ctx context.Context, c comm.Comm, z *points.Dense32, gram gramian) (float64, error) {
	s, t := z.D, measureColumns
	m := &measurement{z: z, c: c, v: make([]float64, t*s), u: make([]float64, t*s)}
	rng.New(0).Sub("float32 products").Normals(m.v, 0)
	logSize := 0.0
	for range measureSteps {
		format := comm.NewFixedPoint(1.01 * gram.trace * blas64.Nrm2(blas64.Vector{N: t * s, Inc: 1, Data: m.v}))
		if err := m.product(ctx, format); err != nil {
			return 0, err
		}
		if err := m.subtract(ctx, gram.DistributedMatrix, format); err != nil { // V ← CV − ZᵀZV, by rows
			return 0, err
		}
		size := blas64.Nrm2(blas64.Vector{N: t * s, Inc: 1, Data: m.u})
		if size == 0 {
			return 0, nil // the same on all ranks
		}
		blas64.Scal(1/size, blas64.Vector{N: t * s, Inc: 1, Data: m.u})
		logSize += math.Log(size)
		m.u, m.v = m.v, m.u
	}
	bound := []float64{math.Exp((logSize - math.Log(measureQuantile)/2) / measureSteps)}
	err := comm.BroadcastFloats(ctx, c, bound, 0) // all ranks must decide alike
	return bound[0], err
}

// subtract sets u = Cv − u, so that u = ZᵀZv becomes Ev. If C is distributed, the ranks add the products of their
// columns with v; the last digits of the result may then differ from the digits in one process. Only the measured error
// depends on it.
func (m *measurement) subtract(ctx context.Context, c *accel.DistributedMatrix, format comm.FixedPoint) error {
	s, t := m.z.D, measureColumns
	y := make([]float64, t*s)
	columns := func(x []float64, j, cols int) blas64.General {
		return blas64.General{Rows: t, Cols: cols, Stride: s, Data: x[j:]}
	}
	err := accel.ForEach(ctx, 1, func(_, _ int) { // inside ForEach, BLAS uses one thread, as for all products
		for block, col := range c.Columns {
			j := block * accel.TileOrder
			width := min(accel.TileOrder, s-j)
			stride, below := cmp.Or(c.Stride, width), s-j-width
			if col == nil {
				continue
			}
			tile := blas64.Symmetric{Uplo: blas.Lower, N: width, Stride: stride, Data: col}
			blas64.Symm(blas.Right, 1, tile, columns(m.v, j, width), 1, columns(y, j, width))
			if below > 0 {
				panel := blas64.General{Rows: below, Cols: width, Stride: stride, Data: col[width*stride:]}
				blas64.Gemm(blas.NoTrans, blas.Trans, 1, columns(m.v, j, width), panel, 1, columns(y, j+width, below))
				blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, columns(m.v, j+width, below), panel, 1, columns(y, j, width))
			}
		}
	})
	err = comm.Agree(ctx, m.c, err)
	if err == nil && c.Size > 1 {
		sum := make([]int64, t*s)
		format.Add(sum, y)
		err = m.c.AllReduceInt64(ctx, sum)
		for i, v := range sum {
			y[i] = format.Value(v)
		}
	}
	for i, v := range y {
		m.u[i] = v - m.u[i]
	}
	return err
}

// measurement is the state of measuredError.
type measurement struct {
	z    *points.Dense32
	c    comm.Comm
	v, u []float64 // t×s: V by columns, and its product with ZᵀZ or E
}

// product sets u = ZᵀZv over the rows of all ranks. Products of panels of RankRows rows are added in fixed point, with
// the bound |Σ_p Z_pᵀZ_pv| ≤ ‖Z‖_F²‖v‖₂.
func (m *measurement) product(ctx context.Context, format comm.FixedPoint) error {
	s, t := m.z.D, measureColumns
	sum := make([]int64, t*s)
	var mu sync.Mutex
	type scratch struct {
		y, u []float64
		simd simd.Workspace
	}
	workers := make([]scratch, accel.Threads())
	err := accel.ForEachBlock(ctx, m.z.N, RankRows, func(worker, i0, i1 int) {
		space := &workers[worker]
		rows, data := i1-i0, m.z.Data[i0*m.z.Stride:]
		buffer.Grow(&space.y, t*rows)
		buffer.Grow(&space.u, t*s)
		clear(space.y)
		clear(space.u)
		y := blas64.General{Rows: t, Cols: rows, Stride: rows, Data: space.y}
		v := blas64.General{Rows: t, Cols: s, Stride: s, Data: m.v}
		simd.AddProduct(data, m.z.Stride, v, y) // y = Z_pv
		v.Data = space.u
		simd.AddTransposeProduct(data, m.z.Stride, v, y, &space.simd) // u = Z_pᵀy
		mu.Lock()
		defer mu.Unlock()
		format.Add(sum, space.u)
	})
	if err = comm.Agree(ctx, m.c, err); err == nil {
		err = m.c.AllReduceInt64(ctx, sum)
	}
	for i, v := range sum {
		m.u[i] = format.Value(v)
	}
	return err
}
