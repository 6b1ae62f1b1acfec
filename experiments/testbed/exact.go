package testbed

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
)

// spectrum is that of K.
type spectrum struct {
	mu  []float64 // ascending
	off float64   // bound of what each may be off
}

// newSpectrum finds all eigenvalues of K, formed in float64, to a millionth of the least λ where its entries can be;
// none of more points than asked for.
func newSpectrum(ctx context.Context, p *Problem, data *datasets.Dataset, least float64,
	o *Options) (*spectrum, error) {
	n := data.Len()
	if n > o.Exact {
		return nil, nil
	}
	a, err := gram.NewExact(p.Kernel, data.X, least, 1e-6*least, nil)
	if err != nil {
		return nil, err
	}
	k := mat.NewDense(n, n, nil)
	if err := a.DenseTo(ctx, k); err != nil {
		return nil, err
	}
	raw := k.RawMatrix()
	mu, err := accel.Eigen(ctx, lapack.EVNone, blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: n, Data: raw.Data})
	if err != nil {
		return nil, err
	}
	return &spectrum{mu, a.Choice().Error + float64(n)*0x1p-52*max(mu[n-1], -mu[0])}, nil
}

// exact returns what the eigenvalues tell of K+λI: λ_min, λ_max, Σ μ_i/(μ_i+λ) and Σ ln(μ_i+λ).
func (s *spectrum) exact(lambda float64) *Exact {
	if s == nil {
		return nil
	}
	e := &Exact{Min: lambda + max(s.mu[0], 0), Max: lambda + s.mu[len(s.mu)-1], Error: s.off}
	for _, m := range s.mu {
		m = max(m, 0)
		e.Degree += m / (m + lambda)
		e.LogDet += math.Log(m + lambda)
	}
	return e
}
