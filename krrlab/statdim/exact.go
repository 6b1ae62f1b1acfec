package statdim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/estimate"
)

// eigenvalues returns the eigenvalues of the symmetric n×n matrix k, ascending, in 4n³/3
// flops on one thread, so that they have the same bits on any number. It overwrites k.
func eigenvalues(k *mat.Dense) ([]float64, error) {
	raw := k.RawMatrix()
	n := raw.Rows
	if raw.Cols != n {
		panic(fmt.Sprintf("statdim: eigenvalues of a %d×%d matrix", n, raw.Cols))
	}
	mu := make([]float64, n)
	a := blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: raw.Stride, Data: raw.Data}
	query := make([]float64, 1)
	lapack64.Syev(lapack.EVNone, a, mu, query, -1)
	work := make([]float64, int(query[0]))
	ok := false
	err := accel.ForEach(context.Background(), 1, func(_, _ int) { ok = lapack64.Syev(lapack.EVNone, a, mu, work, len(work)) })
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("statdim: the eigenvalues of K, of order %d, did not converge", n)
	}
	return mu, nil
}

// Exact computes s_λ = Σ_i μ_i/(μ_i+λ) from all eigenvalues of K, which it overwrites, for
// the problem's λ and the further lambdas. The eigenvalues are known to
// ε = err + n·2⁻⁵²·max|μ|, err bounding the error of k's entries in the 2-norm, and the
// interval is that of Weyl, Σ g((μ_i−ε)₊) … Σ g((μ_i)₊+ε).
func Exact(k *mat.Dense, err, lambda float64, lambdas []float64) (*Result, error) {
	all := slices.Compact(slices.Sorted(slices.Values(append([]float64{lambda}, lambdas...))))
	if e := checkLambdas(all); e != nil {
		return nil, e
	}
	start := time.Now()
	mu, e := eigenvalues(k)
	if e != nil {
		return nil, e
	}
	n := len(mu)
	eps := err + float64(n)*0x1p-52*max(-mu[0], mu[n-1])
	res := &Result{Reached: true}
	for _, l := range all {
		at := estimate.Interval{Confidence: 1, Method: "exact", Seconds: time.Since(start).Seconds()}
		for _, m := range mu {
			at.Value += degree(max(m, 0), l)
			at.Lo += degree(max(m-eps, 0), l)
			at.Hi += degree(max(m, 0)+eps, l)
		}
		round := float64(n) * 0x1p-52 * at.Value // of the sums
		at.Lo, at.Hi = max(at.Lo-round, 0), min(at.Hi+round, float64(n))
		res.Curve = append(res.Curve, Point{l, at})
		if l == lambda {
			res.Estimate, res.Storage = at, math.Max(at.Hi-at.Value, at.Value-at.Lo)
		}
	}
	return res, nil
}

// degree returns g(μ) = μ/(μ+λ).
func degree(mu, lambda float64) float64 { return mu / (mu + lambda) }
