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
	"github.com/krrlab/lab/krrlab/estimate"
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
	u := len(m.first)
	a := make([]float64, u*u)
	scores := make([]Score, len(lambdas))
	for q, lambda := range lambdas {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("leaveout: λ = %g: %w", lambda, err)
		}
		start := time.Now()
		trace := m.matrix(a, k, lambda)
		f, err := NewFactor(u, a)
		if err != nil {
			return nil, fmt.Errorf("leaveout: λ = %g: %w", lambda, err)
		}
		x := m.sides()
		f.Forward(x)
		f.Backward(x)
		if size := mat.Norm(x, 2) + floats.Sum(f.Diag); math.IsNaN(size) || math.IsInf(size, 0) {
			return nil, fmt.Errorf("leaveout: λ = %g: K or Y has a number that is not finite", lambda)
		}
		eps := opt.KError + 4*float64(u+1)*0x1p-53*trace
		scores[q] = m.exact(x, f.Diag, lambda, eps, &opt)
		scores[q].Error.Seconds = time.Since(start).Seconds()
		opt.Progress(q+1, len(lambdas))
	}
	return scores, nil
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

// Together returns diag(PᵀA⁻¹P) for groups of equal rows G, with p_i = 1/√|G|, each in the place of its first row,
// same as points.Same has them. Work: n²/2 multiply-adds.
func (f *Factor) Together(same []int) []float64 {
	n := f.l.N
	size, sum, out := make([]float64, n), make([]float64, n), make([]float64, n)
	for _, g := range same {
		size[g]++
	}
	for i := range n {
		row := f.l.Data[i*n : i*n+i+1]
		for j, v := range row {
			sum[same[j]] += v
		}
		for j := range row { // ‖L⁻¹p_g‖²
			out[j] += sum[j] * sum[j] / max(size[j], 1)
			sum[j] = 0
		}
	}
	return out
}

// Forward sets B to L⁻¹B.
func (f *Factor) Forward(b *mat.Dense) { blas64.Trmm(blas.Left, blas.NoTrans, 1, f.l, b.RawMatrix()) }

// Backward sets B to L⁻ᵀB: A⁻¹ is Forward, then Backward.
func (f *Factor) Backward(b *mat.Dense) { blas64.Trmm(blas.Left, blas.Trans, 1, f.l, b.RawMatrix()) }

// exact makes the score of X = Ã⁻¹[Ỹ, b̃] and diag(Ã⁻¹) that Ã is known to ε for.
func (m *merged) exact(x *mat.Dense, d []float64, lambda, eps float64, o *Problem) Score {
	s := Score{Lambda: lambda}
	num, reach, c, used := m.shift(x)
	u, t := c.Dims()
	share := eps / (lambda - eps)
	if !(eps < lambda) {
		share = math.Inf(1)
	}
	if reach == 0 { // Y = 0, and C, whatever A is
		share = 0
	}
	var ee, trace, off float64
	norms := make([]float64, u) // of rows of Ẽ
	e := mat.NewDense(u, t, nil)
	for i, di := range d {
		trace += di
		for j := range t {
			v := num.At(i, j) / di
			e.Set(i, j, v)
			ee += v * v
			norms[i] = max(norms[i], math.Abs(v))
		}
		off = max(off, reach/di)
	}
	s.GCV, s.S = m.gcv(c, trace-used), float64(u)-lambda*(trace-used)
	off *= share // ‖D⁻¹δC‖_F at most, and any entry of it
	if o.Classes {
		n := float64(len(m.of))
		count, open := wrong(m.full, m.spread(e), func(i int) float64 {
			return m.p[i] * (off + share*norms[m.of[i]]) * (1 + share)
		})
		s.Error = estimate.Exact(float64(count)/n, float64(open)/n, "exact")
		s.Error.Lo, s.Error.Hi = max(0, s.Error.Lo), min(1, s.Error.Hi)
	} else {
		root, slack := math.Sqrt(ee), (off+share*math.Sqrt(ee))*(1+share)
		s.Error = estimate.Exact(m.square(ee), 0, "exact")
		lo, hi := max(0, root-slack), root+slack
		s.Error.Lo, s.Error.Hi = m.square(lo*lo), m.square(hi*hi)
	}
	if o.Residuals {
		s.Residuals = m.residuals(e)
	}
	return s
}
