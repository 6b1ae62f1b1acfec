package leaveout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// Dense scores each λ from K, n×n, of which the lower triangle is read, by
//
//	A = LLᵀ,  (A⁻¹)_ii = Σ_k (L⁻¹)²_ki,  C = L⁻ᵀL⁻¹Y,  y_i−f_{−i}(x_i) = c_i/(A⁻¹)_ii,
//
// Y n×t; equal rows are left out together, and the mean is that of the others, as Problem says. Scores are in the
// order of lambdas. Intervals have confidence 1. They hold for rounding and for Problem.KError: with ε ≥ ‖E‖₂, E the
// error of A, 2(n+1)·2⁻⁵³·tr A for the factorization (Higham, Accuracy and Stability, theorem 10.3) and as much for
// L⁻¹ (theorem 14.1) included,
//
//	|δ(A⁻¹)_ii| ≤ ε/(λ−ε)·(A⁻¹)_ii,  ‖δc‖₂ ≤ ε/(λ−ε)·‖c‖₂.
//
// Work: 2n³/3 multiply-adds for each λ, memory: 8n² bytes. It returns an error if K+λI is not positive definite in
// float64 or ctx ends, and panics if the shapes differ.
func Dense(ctx context.Context, k, y *mat.Dense, lambdas []float64, o *Problem) ([]Score, error) {
	n, cols := k.Dims()
	if cols != n {
		panic(fmt.Sprintf("leaveout: K is %d×%d", n, cols))
	}
	if err := check(n, y, lambdas); err != nil {
		return nil, err
	}
	opt := o.settled()
	m, err := opt.merge(y)
	if err != nil {
		return nil, err
	}
	a, scores := make([]float64, len(m.first)*len(m.first)), make([]Score, len(lambdas))
	for q, lambda := range lambdas {
		err := ctx.Err()
		if err == nil {
			scores[q], err = m.dense(a, k, lambda, &opt)
		}
		if err != nil {
			return nil, fmt.Errorf("leaveout: λ = %g: %w", lambda, err)
		}
		opt.Progress(q+1, len(lambdas))
	}
	return scores, nil
}

// dense returns the score of one λ; a is scratch for Ã.
func (m *merged) dense(a []float64, k *mat.Dense, lambda float64, o *Problem) (Score, error) {
	start, u := time.Now(), len(m.first)
	trace := m.matrix(a, k, lambda)
	f, err := NewFactor(u, a)
	if err != nil {
		return Score{}, err
	}
	x := m.sides()
	f.Forward(x)
	f.Backward(x)
	if size := mat.Norm(x, 2) + floats.Sum(f.Diag); math.IsNaN(size) || math.IsInf(size, 0) {
		return Score{}, errors.New("K or Y has a number that is not finite")
	}
	s, err := m.exact(x, f, lambda, o.KError+4*float64(u+1)*0x1p-53*trace, o)
	s.Error.Seconds = time.Since(start).Seconds()
	return s, err
}

// Factor is L⁻¹ of A = LLᵀ, with which systems are solved by two products.
type Factor struct {
	Diag []float64 // of A⁻¹: Σ_k (L⁻¹)²_ki
	l    blas64.Triangular
}

// NewFactor returns the factor of the n×n matrix A, of which the lower triangle is read, in its memory. Work: 2n³/3
// multiply-adds. It returns an error if A is not positive definite in float64.
func NewFactor(n int, a []float64) (*Factor, error) {
	if !accel.Dpotrf(n, a, n) || !accel.Dtrtri(n, a, n) { // L, then L⁻¹
		return nil, errors.New("K+λI is not positive definite in float64: take a larger λ")
	}
	f := &Factor{Diag: make([]float64, n), l: blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n,
		Data: a}}
	for i := range n {
		for j, v := range a[i*n : i*n+i+1] {
			f.Diag[j] += v * v
		}
	}
	return f, nil
}

// Blocks returns the rows of each group, where first has for each row the first row of its group.
func Blocks(first []int) (blocks [][]int) {
	at := make([]int, len(first))
	for i, f := range first {
		if f == i {
			at[i], blocks = len(blocks), append(blocks, nil)
		}
		blocks[at[f]] = append(blocks[at[f]], i)
	}
	return blocks
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// LeaveOut replaces the rows V_B of V by ((A⁻¹)_BB)⁻¹V_B for each block B of rows. It returns for each block bounds of
// ‖((A⁻¹)_BB)⁻¹‖₂ and of the square root of the condition number of (A⁻¹)_BB. Work: n|B|²/2 multiply-adds for each
// block of several rows. It returns an error if a block is not positive definite in float64.
func (f *Factor) LeaveOut(v *mat.Dense, blocks [][]int) (norm, condition []float64, err error) {
	_, t := v.Dims()
	for _, block := range blocks {
		if m := len(block); m > 1 {
			b := f.block(block)
			trace := mat.Trace(b)
			g, err := NewFactor(m, b.RawMatrix().Data)
			if err != nil {
				return nil, nil, errors.New("the rows of a group are too many or too alike to be left out in " +
					"float64: take a larger λ")
			}
			part := mat.NewDense(m, t, nil)
			for k, i := range block {
				part.SetRow(k, v.RawRowView(i))
			}
			g.Forward(part)
			g.Backward(part)
			for k, i := range block {
				v.SetRow(i, part.RawRowView(k))
			}
			norm = append(norm, floats.Sum(g.Diag))
			condition = append(condition, math.Sqrt(trace*floats.Sum(g.Diag)))
			continue
		}
		d := f.Diag[block[0]]
		row := v.RawRowView(block[0])
		for j := range row {
			row[j] /= d
		}
		norm, condition = append(norm, 1/d), append(condition, 1)
	}
	return norm, condition, nil
}

// block returns the rows and columns of A⁻¹ = L⁻ᵀL⁻¹ with the given indices.
func (f *Factor) block(rows []int) *mat.Dense {
	n, m := f.l.N, len(rows)
	columns := mat.NewDense(n-rows[0], m, nil) // of L⁻¹, which has zeros above
	for i := rows[0]; i < n; i++ {
		for k, j := range rows {
			if j > i {
				break
			}
			columns.Set(i-rows[0], k, f.l.Data[i*n+j])
		}
	}
	out := mat.NewDense(m, m, nil)
	blas64.Syrk(blas.Trans, 1, columns.RawMatrix(), 0,
		blas64.Symmetric{Uplo: blas.Lower, N: m, Stride: m, Data: out.RawMatrix().Data})
	return out
}

// Forward sets B to L⁻¹B.
func (f *Factor) Forward(b *mat.Dense) { blas64.Trmm(blas.Left, blas.NoTrans, 1, f.l, b.RawMatrix()) }

// Backward sets B to L⁻ᵀB: A⁻¹ is Forward, then Backward.
func (f *Factor) Backward(b *mat.Dense) { blas64.Trmm(blas.Left, blas.Trans, 1, f.l, b.RawMatrix()) }

// exact makes the score of X = Ã⁻¹[Ỹ, b̃] and the factor of Ã, which is known to ε. With B of the blocks
// (Ã⁻¹)_BB, ‖δẼ_B‖₂ ≤ ‖B⁻¹‖₂‖δC_B‖₂ + √κ(B)·ε/(λ−ε)·‖Ẽ_B‖₂ to the first order.
func (m *merged) exact(x *mat.Dense, f *Factor, lambda, eps float64, o *Problem) (Score, error) {
	s := Score{Lambda: lambda}
	e, reach, c, used := m.shift(x)
	u, _ := c.Dims()
	share := eps / (lambda - eps)
	if !(eps < lambda) {
		share = math.Inf(1)
	}
	if reach == 0 { // Y = 0, and C, whatever A is
		share = 0
	}
	if e == c {
		e = mat.DenseCopyOf(c)
	}
	inverse, condition, err := f.LeaveOut(e, m.blocks)
	if err != nil {
		return s, err
	}
	var ee, off, worst float64
	norms := make([]float64, u) // of rows of Ẽ, or of their blocks times √κ(B)
	for q, block := range m.blocks {
		var square float64
		for _, g := range block {
			for _, v := range e.RawRowView(g) {
				norms[g] = max(norms[g], math.Abs(v))
				square += v * v
			}
		}
		for _, g := range block {
			if len(block) > 1 {
				norms[g] = condition[q] * math.Sqrt(square)
			}
		}
		off, worst = max(off, reach*inverse[q]), max(worst, condition[q])
	}
	for g := range u {
		for _, v := range e.RawRowView(g) {
			ee += v * v
		}
	}
	var trace float64
	for _, d := range f.Diag {
		trace += d
	}
	s.GCV, s.S = m.gcv(c, trace-used), float64(u)-lambda*(trace-used)
	off *= share // ‖B⁻¹δC‖_F at most, and any entry of it
	if o.Classes {
		count, open := m.wrong(m.spread(e), func(i int) float64 {
			return m.p[i] * (off + share*norms[m.of[i]]) * (1 + share)
		})
		s.Error = estimate.Exact(count, open, "exact")
		s.Error.Lo, s.Error.Hi = max(0, s.Error.Lo), min(1, s.Error.Hi)
	} else {
		root, slack := math.Sqrt(ee), (off+share*worst*math.Sqrt(ee))*(1+share)
		s.Error = estimate.Exact(m.square(ee), 0, "exact")
		lo, hi := max(0, root-slack), root+slack
		s.Error.Lo, s.Error.Hi = m.square(lo*lo), m.square(hi*hi)
	}
	if o.Residuals {
		s.Residuals = m.residuals(e)
	}
	return s, nil
}
