package testbed

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
)

// spectrum contains the eigenvalues of K.
type spectrum struct {
	mu         []float64 // eigenvalues, ascending
	errorBound float64   // bound on the absolute error of each eigenvalue
}

// denseK returns K, n×n, in float64. Its entries are computed so that its error is at most lambda/10⁶, if possible; the
// bound on its error in the 2-norm is returned too.
func (s *setup) denseK(ctx context.Context, lambda float64) (*mat.Dense, float64, error) {
	exact, err := gram.NewExact(s.Kernel, s.data.X, lambda, 1e-6*lambda, nil)
	if err != nil {
		return nil, 0, err
	}
	k := mat.NewDense(exact.Dim(), exact.Dim(), nil)
	return k, exact.Choice().Error, exact.DenseTo(ctx, k)
}

// spectrum computes all eigenvalues of K, with an error that is negligible compared with minLambda if possible. It
// returns nil if there are more than Options.Exact points.
func (s *setup) spectrum(ctx context.Context, minLambda float64) (*spectrum, error) {
	n := s.data.Len()
	if n > s.options.Exact {
		return nil, nil
	}
	k, errorBound, err := s.denseK(ctx, minLambda)
	if err != nil {
		return nil, err
	}
	mu, err := accel.Eigen(ctx, lapack.EVNone, blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: n,
		Data: k.RawMatrix().Data})
	if err != nil {
		return nil, err
	}
	roundingError := float64(n) * 0x1p-52 * max(mu[n-1], -mu[0]) // rounding error of the eigenvalue solver
	return &spectrum{mu, errorBound + roundingError}, nil
}

// exact returns properties of K+λI that follow from the eigenvalues μ_i of K: λ_min, λ_max, Σ μ_i/(μ_i+λ) and
// Σ ln(μ_i+λ). Negative μ_i are rounding errors and count as 0. It returns nil if s is nil.
func (s *spectrum) exact(lambda float64) *Exact {
	if s == nil {
		return nil
	}
	result := &Exact{Min: lambda + max(s.mu[0], 0), Max: lambda + s.mu[len(s.mu)-1], Error: s.errorBound}
	for _, eigenvalue := range s.mu {
		eigenvalue = max(eigenvalue, 0)
		result.Degree += eigenvalue / (eigenvalue + lambda)
		result.LogDet += math.Log(eigenvalue + lambda)
	}
	return result
}
