package precond

import (
	"cmp"
	"context"
	"fmt"
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

// The measurement of E: the random columns, and the products with E. A sum of squares
// of measureColumns standard normal numbers is below measureTail with probability 1e-6.
const (
	measureColumns = 8
	measureSteps   = 4
	measureTail    = 0.14

	// Measured is how many numbers for each feature ranks add to measure E, and as many again where they share ZᵀZ.
	Measured = measureColumns * measureSteps
)

// gramian is ZᵀZ, which ranks share or each has, and its trace.
type gramian struct {
	*accel.Dealt
	trace float64
}

// whole returns the ZᵀZ in w.factor.
func (w *Woodbury) whole() gramian {
	c := gramian{Dealt: accel.Whole(w.s, w.factor, w.s)}
	for j := range w.s {
		c.trace += w.factor[j*w.s+j]
	}
	return c
}

// gram returns ZᵀZ, in w.factor unless ranks share it: with fast by float32 products where their error E is predicted
// and then measured to have ‖E‖₂ ≤ λ_p/10, in float64 otherwise.
func (w *Woodbury) gram(ctx context.Context, fast bool) (c gramian, err error) {
	k := w.rows
	form := func(fast bool) (err error) {
		if Sharers(w.form, w.n, w.s, 1, k.comm.Size()) > 1 {
			c.Dealt = k.zeros(ctx, w.s)
		} else {
			w.factor = make([]float64, w.s*w.s)
			c.Dealt = accel.Whole(w.s, w.factor, w.s)
		}
		c.trace, err = k.gram(ctx, w.z, 0, fast, c.Dealt)
		return err
	}
	if e := 0.0; fast {
		if e, err = k.fastError(ctx, w.z); err == nil && e <= w.lambdaP/10 {
			if err = form(true); err == nil {
				e, err = measuredError(ctx, k.comm, w.z, c)
			}
			if err == nil && e <= w.lambdaP/10 {
				return c, nil
			}
		}
	}
	if err == nil {
		err = form(false)
	}
	return c, err
}

// measuredError returns a bound of ‖E‖₂, E = C−ZᵀZ, for the ZᵀZ of all ranks' rows that float32
// products gave as the lower triangle C. No model of rounding errors holds for all Z: the
// columns of a landmark factor differ in norm by orders of magnitude, and the errors of sums of
// like numbers point the same way. So E is multiplied by random columns V: with u its leading
// eigenvector, ‖EᵏV‖_F ≥ ‖E‖₂ᵏ‖uᵀV‖₂, and
//
//	‖E‖₂ ≤ (‖EᵏV‖_F/√x)^{1/k},
//
// x = measureTail, but for a probability of 1e-6. For independent errors the bound is some three
// times ‖E‖₂. Work: 4nst flops a step, t = measureColumns.
func measuredError(ctx context.Context, c comm.Comm, z *points.Dense32, gram gramian) (float64, error) {
	s, t := z.D, measureColumns
	m := &measurement{z: z, c: c, v: make([]float64, t*s), u: make([]float64, t*s)}
	rng.New(0).Sub("float32 products").Normals(m.v, 0)
	logSize := 0.0
	for range measureSteps {
		fixed := comm.FixedFor(1.01 * gram.trace * blas64.Nrm2(blas64.Vector{N: t * s, Inc: 1, Data: m.v}))
		if err := m.product(ctx, fixed); err != nil {
			return 0, err
		}
		if err := m.subtract(ctx, gram.Dealt, fixed); err != nil { // V ← CV − ZᵀZV, by rows
			return 0, err
		}
		size := blas64.Nrm2(blas64.Vector{N: t * s, Inc: 1, Data: m.u})
		if size == 0 {
			return 0, nil // at all ranks
		}
		blas64.Scal(1/size, blas64.Vector{N: t * s, Inc: 1, Data: m.u})
		logSize += math.Log(size)
		m.u, m.v = m.v, m.u
	}
	e := []float64{math.Exp((logSize - math.Log(measureTail)/2) / measureSteps)}
	err := comm.ShareNumbers(ctx, c, e, 0) // one number decides for all ranks
	return e[0], err
}

// subtract sets u = Cv − u. Ranks add what their columns make of v, by which the last digits of what is measured, and
// no others, may differ from one process'.
func (m *measurement) subtract(ctx context.Context, c *accel.Dealt, fixed comm.Fixed) error {
	s, t := m.z.D, measureColumns
	y := make([]float64, t*s)
	part := func(x []float64, j, cols int) blas64.General {
		return blas64.General{Rows: t, Cols: cols, Stride: s, Data: x[j:]}
	}
	err := accel.ForEach(ctx, 1, func(_, _ int) { // on one thread of the BLAS, as all products are
		for b, col := range c.Columns {
			j := b * accel.TileOrder
			k := min(accel.TileOrder, s-j)
			ld, below := cmp.Or(c.Stride, k), s-j-k
			if col == nil {
				continue
			}
			tile := blas64.Symmetric{Uplo: blas.Lower, N: k, Stride: ld, Data: col}
			blas64.Symm(blas.Right, 1, tile, part(m.v, j, k), 1, part(y, j, k))
			if below > 0 {
				a := blas64.General{Rows: below, Cols: k, Stride: ld, Data: col[k*ld:]}
				blas64.Gemm(blas.NoTrans, blas.Trans, 1, part(m.v, j, k), a, 1, part(y, j+k, below))
				blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, part(m.v, j+k, below), a, 1, part(y, j, k))
			}
		}
	})
	err = comm.Agree(ctx, m.c, err)
	if err == nil && c.Size > 1 {
		sum := make([]int64, t*s)
		fixed.Add(sum, y)
		err = m.c.AllReduceInt64(ctx, sum)
		for i, v := range sum {
			y[i] = fixed.Value(v)
		}
	}
	for i, v := range y {
		m.u[i] = v - m.u[i]
	}
	return err
}

// measurement is the state of products with ZᵀZ: v and u are t×s.
type measurement struct {
	z    *points.Dense32
	c    comm.Comm
	v, u []float64
}

// product sets u = ZᵀZv over the rows of all ranks, in panels of RankRows rows whose sums are
// taken in fixed point: |Σ_p Z_pᵀZ_pv| ≤ ‖Z‖_F²‖v‖₂.
func (m *measurement) product(ctx context.Context, fixed comm.Fixed) error {
	s, t := m.z.D, measureColumns
	sum := make([]int64, t*s)
	var mu sync.Mutex
	type scratch struct {
		y, u []float64
		simd simd.Workspace
	}
	work := make([]scratch, accel.Threads())
	panels := (m.z.N + RankRows - 1) / RankRows
	err := accel.ForEach(ctx, panels, func(who, p int) {
		w := &work[who]
		i0, i1 := p*RankRows, min((p+1)*RankRows, m.z.N)
		rows, data := i1-i0, m.z.Data[i0*m.z.Stride:]
		buffer.Grow(&w.y, t*rows)
		buffer.Grow(&w.u, t*s)
		clear(w.y)
		clear(w.u)
		simd.Forward(rows, s, data, m.z.Stride, m.v, s, w.y, rows, t)           // y = Z_pv
		simd.Backward(rows, s, data, m.z.Stride, w.u, s, w.y, rows, t, &w.simd) // Z_pᵀy
		mu.Lock()
		defer mu.Unlock()
		fixed.Add(sum, w.u)
	})
	if err = comm.Agree(ctx, m.c, err); err == nil {
		err = m.c.AllReduceInt64(ctx, sum)
	}
	for i, v := range sum {
		m.u[i] = fixed.Value(v)
	}
	return err
}

// Constants of Cost, measured with OpenBLAS on two cores at n = 20,000, s = 2,000 and
// t = 1, 4, 10 (BenchmarkSolveTo, BenchmarkMiddle).
const (
	// solveSlowdown is ρ: how much longer a flop of a triangular solve takes than one of
	// a product. With more cores it grows, as t columns are few to share.
	solveSlowdown = 2
	// readZ and readU say how long reading an n×s matrix takes, as a number of columns
	// more to multiply it by: Z must be read and converted, U only read.
	readZ, readU = 20, 12
)

// Cost returns the work, in flops of a matrix product, of setting up M⁻¹ for n points
// and s features in a form and applying it the given number of times to t columns:
//
//	all    ns²                  to form half of ZᵀZ
//	L      s³/3        + iterations·(4ns(t+readZ) + 2s²t·ρ)
//	Linv   2s³/3       + iterations·(4ns(t+readZ) + 2s²t)
//	U      s³/3 + ns²  + iterations·4ns(t+readU)
//	eigen  9s³         + iterations·(4ns(t+readZ) + 4s²t)
//
// In flops alone (readZ = readU = 0) U pays against L if iterations·t·ρ > n/2; and Linv
// against L if iterations·t·(ρ−1) > s/6. Cost panics for AutoForm.
func Cost(form Form, n, s, t, iterations int) float64 {
	fn, fs, ft, it := float64(n), float64(s), float64(t), float64(iterations)
	gram, chol := fn*fs*fs, fs*fs*fs/3
	products := 4 * fn * fs * (ft + readZ)
	middle := 2 * fs * fs * ft
	switch form {
	case FormL:
		return gram + chol + it*(products+middle*solveSlowdown)
	case FormLInv:
		return gram + 2*chol + it*(products+middle)
	case FormU:
		return gram + chol + fn*fs*fs + it*4*fn*fs*(ft+readU)
	case FormEigen:
		return gram + 9*fs*fs*fs + it*(products+2*middle)
	}
	panic(fmt.Sprintf("precond: Cost of form %v", form))
}

// choose returns Linv or U, that of less Cost for t columns and as many uses as a solve has. L, which saves s³/3 at
// first, never is: StatDim would take them after all. U is left out where its 8ns bytes are more than the 4ns + 8s² of
// the other, about n > 2s.
func choose(n, s, t int) Form {
	const uses = 100
	if n <= 2*s && Cost(FormU, n, s, t, uses) < Cost(FormLInv, n, s, t, uses) {
		return FormU
	}
	return FormLInv
}
