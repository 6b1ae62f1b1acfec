package loo

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
// Y n×t; scores are in the order of lambdas. Intervals have confidence 1. They hold for rounding and for
// Options.KError: with ε ≥ ‖E‖₂, E what A is off by, 2(n+1)·2⁻⁵³·tr A for the factorization (Higham, Accuracy and
// Stability, theorem 10.3) and as much for L⁻¹ (theorem 14.1) included,
//
//	|δ(A⁻¹)_ii| ≤ ε/(λ−ε)·(A⁻¹)_ii,  ‖δc‖₂ ≤ ε/(λ−ε)·‖c‖₂.
//
// Work: 2n³/3 multiply-adds for each λ, memory: 8n² bytes. It returns an error if K+λI is not positive definite in
// float64 or ctx ends, and panics if the shapes differ.
func Dense(ctx context.Context, k, y *mat.Dense, lambdas []float64, o *Options) ([]Score, error) {
	n, cols := k.Dims()
	if cols != n {
		panic(fmt.Sprintf("loo: K is %d×%d", n, cols))
	}
	if err := check(n, y, lambdas); err != nil {
		return nil, err
	}
	opt := o.settled()
	y, unit := inUnit(y)
	a := make([]float64, n*n)
	scores := make([]Score, len(lambdas))
	for q, lambda := range lambdas {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("loo: λ = %g: %w", lambda, err)
		}
		start := time.Now()
		var trace float64
		for i := range n {
			copy(a[i*n:i*n+i+1], k.RawRowView(i))
			a[i*n+i] += lambda
			trace += a[i*n+i]
		}
		f, err := NewFactor(n, a)
		if err != nil {
			return nil, fmt.Errorf("loo: λ = %g: %w", lambda, err)
		}
		c := mat.DenseCopyOf(y)
		f.Forward(c)
		f.Backward(c)
		if size := mat.Norm(c, 2) + floats.Sum(f.Diag); math.IsNaN(size) || math.IsInf(size, 0) {
			return nil, fmt.Errorf("loo: λ = %g: K or Y has a number that is not finite", lambda)
		}
		eps := opt.KError + 4*float64(n+1)*0x1p-53*trace
		scores[q] = exact(y, c, f.Diag, lambda, eps, &opt)
		scores[q].Error.Seconds = time.Since(start).Seconds()
		opt.Progress(q+1, len(lambdas))
	}
	times(unit, scores, opt.Classes)
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
	f := &Factor{Diag: make([]float64, n), l: blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n, Data: a}}
	for i := range n {
		for j, v := range a[i*n : i*n+i+1] {
			f.Diag[j] += v * v
		}
	}
	return f, nil
}

// Forward sets B to L⁻¹B.
func (f *Factor) Forward(b *mat.Dense) { blas64.Trmm(blas.Left, blas.NoTrans, 1, f.l, b.RawMatrix()) }

// Backward sets B to L⁻ᵀB: A⁻¹ is Forward, then Backward.
func (f *Factor) Backward(b *mat.Dense) { blas64.Trmm(blas.Left, blas.Trans, 1, f.l, b.RawMatrix()) }

// exact makes the score of C and diag(A⁻¹) that A is known to ε for.
func exact(y, c *mat.Dense, d []float64, lambda, eps float64, o *Options) Score {
	n, t := y.Dims()
	s := Score{Lambda: lambda}
	share := eps / (lambda - eps)
	if !(eps < lambda) {
		share = math.Inf(1)
	}
	norm := mat.Norm(c, 2)
	if norm == 0 { // Y = 0, and C, whatever A is
		share = 0
	}
	var ee, trace, off float64
	norms := make([]float64, n) // of rows of E
	e := mat.NewDense(n, t, nil)
	for i, di := range d {
		trace += di
		for j := range t {
			v := c.At(i, j)
			e.Set(i, j, v/di)
			ee += v / di * v / di
			norms[i] = max(norms[i], math.Abs(v/di))
		}
		off = max(off, norm/di)
	}
	nt := float64(n * t)
	s.GCV, s.S = gcv(c, trace), float64(n)-lambda*trace
	off *= share // ‖D⁻¹δC‖_F at most, and any entry of it
	if o.Classes {
		count, open := wrong(y, e, func(i int) float64 { return (off + share*norms[i]) * (1 + share) })
		s.Error = estimate.Exact(float64(count)/float64(n), float64(open)/float64(n), "exact")
		s.Error.Lo, s.Error.Hi = max(0, s.Error.Lo), min(1, s.Error.Hi)
	} else {
		root, slack := math.Sqrt(ee), (off+share*math.Sqrt(ee))*(1+share)
		s.Error = estimate.Exact(ee/nt, 0, "exact")
		lo, hi := max(0, root-slack), root+slack
		s.Error.Lo, s.Error.Hi = lo*lo/nt, hi*hi/nt
	}
	if o.Residuals {
		s.Residuals = e
	}
	return s
}

// gcv returns n‖C‖²_F/(t·(tr A⁻¹)²), squares of quotients of the size of Y.
func gcv(c *mat.Dense, trace float64) float64 {
	n, t := c.Dims()
	v := mat.Norm(c, 2) / (trace / float64(n)) / math.Sqrt(float64(n*t))
	return v * v
}
