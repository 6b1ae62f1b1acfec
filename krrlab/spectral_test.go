package krrlab

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestSpectral: M is U(Σ²+λI)Uᵀ+(σ_r²+λ)(I−UUᵀ) of the F that is not spectral, and what is certain of it holds.
func TestSpectral(t *testing.T) {
	const n, s, lambda = 150, 20, 0.01
	narrow := kernel.Gaussian{Sigma: 0.5}
	train := ranksProblem(n)
	for _, p := range []PrecondSpec{{Name: "nystrom", S: s, Spectral: true}, {Name: "rpcholesky", S: s, Spectral: true}} {
		made := func(spectral bool) *Lab {
			p.Spectral = spectral
			return newLab(t, train, Config{Kernel: narrow, Lambda: lambda, Seed: 3,
				Precond: testkit.Must(p.Preconditioner(narrow))})
		}
		l := made(true)
		var svd mat.SVD
		z := testkit.Must(made(false).Z(t.Context()))
		f := mat.NewDense(n, z.D, nil)
		for i := range n {
			z.RowTo(f.RawRowView(i), i)
		}
		if !svd.Factorize(f, mat.SVDThin) {
			t.Fatal("no SVD")
		}
		var u, v, want mat.Dense
		svd.UTo(&u)
		sigma := svd.Values(nil)
		least := math.Pow(sigma[z.D-1], 2)
		v.Apply(func(_, j int, u float64) float64 { return u * (sigma[j]*sigma[j] - least) }, &u)
		want.Mul(&v, u.T())
		got := mat.NewDense(n, n, nil)
		for i := range n {
			got.Set(i, i, 1)
			want.Set(i, i, want.At(i, i)+lambda+least)
		}
		m := testkit.Must(l.M(t.Context()))
		testkit.OK(t, m.SolveTo(t.Context(), got, got))
		var product mat.Dense
		product.Mul(&want, got)
		for i := range n {
			product.Set(i, i, product.At(i, i)-1)
		}
		if e := mat.Norm(&product, 2); e > 1e-6*sigma[0]*sigma[0]/lambda {
			t.Errorf("%v: M·M⁻¹ is off I by %g", l.cfg.Precond, e)
		}
		k := newReference(t, narrow, train.X, lambda, l.y).a
		var a mat.Dense
		a.Mul(got, k)
		var eigen mat.Eigen
		if !eigen.Factorize(&a, mat.EigenNone) {
			t.Fatal("no eigenvalues")
		}
		lo, hi := math.Inf(1), 0.0
		for _, v := range eigen.Values(nil) {
			lo, hi = min(lo, real(v)), max(hi, real(v))
		}
		low := l.z.low
		lambdaP := lambda + l.z.more
		if theta := low.LambdaMin(lambda, lambdaP); theta > lo || theta < 0.9*lambda/(lambda+least) ||
			low.CondBound(lambda, lambdaP) < hi/lo {
			t.Errorf("%v: λ_min %g, κ %g; claimed %g, %g", l.cfg.Precond, lo, hi/lo, theta, low.CondBound(lambda, lambdaP))
		}
		sol := solveLab(t, l)
		if least < lambda {
			t.Fatalf("σ_s² = %g is too small to tell", least)
		}
		if v := float64(sol.LambdaP); math.Abs(v-lambda-least) > 1e-6*least {
			t.Errorf("λ_p = %g, want %g", v, lambda+least)
		}
	}
}
