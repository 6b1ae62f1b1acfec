package lowrank_test

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/suite"
)

func useOpenBLAS(t testing.TB) {
	lib, err := accel.OpenBLAS()
	if err != nil {
		t.Log(err)
		return
	}
	accel.Use(lib)
	t.Cleanup(func() { accel.Use(nil) })
}

// TestIterations counts iterations on the first 5,000 points of MNIST: σ = 8.5, λ =
// 0.01, τ = 1e-3, rank 500, for as many Fourier features, Nyström and RPCholesky. The
// order must be that measured at 20,000 points, and both far ahead of features.
func TestIterations(t *testing.T) {
	dir := suite.RealData(t)
	useOpenBLAS(t)
	const n, rank, lambda = 5000, 500, 0.01
	pair, err := datasets.Load(ctx, "mnist", &datasets.LoadOptions{Dirs: []string{dir}})
	if err != nil {
		t.Skip(err)
	}
	x := pair.Train.X.Slice(0, n)
	y := mat.NewDense(n, 10, nil)
	for i := range n {
		for j := range 10 {
			y.Set(i, j, -1)
		}
		y.Set(i, int(pair.Train.Class[i]), 1)
	}
	k := testkit.Must(gram.New(ctx, kernel.Gaussian{Sigma: 8.5}, x, lambda, nil))
	t.Log(k.Choice())
	iterations := map[string]int{}
	solve := func(name string, z *points.Dense32) {
		for _, ratio := range []float64{1, 10} {
			m := testkit.Must(precond.New(ctx, z, ratio*lambda, nil))
			res, err := pcg.Solve(ctx, k, m, y, nil)
			if err != nil || res.Status != pcg.Converged {
				t.Fatal(res.Status, err)
			}
			t.Logf("%s, λ_p = %gλ: %d iterations, κ ≈ %.4g", name, ratio, res.Iterations, res.Cond())
			iterations[fmt.Sprintf("%s %g", name, ratio)] = res.Iterations
		}
	}
	phi := testkit.Must(feature.Fourier{Kernel: kernel.Gaussian{Sigma: 8.5}}.Sample(784, rank, rng.New(1)))
	z := testkit.Must(feature.Matrix(ctx, phi, x, nil))
	solve("features", z)
	for name, m := range methods {
		f := must2(t)(m(ctx, k, rank, rng.New(1), nil))
		t.Log(f)
		t.Logf("rounding %.3g, bound %.4g, %.4g at 10λ", f.Rounding, f.CondBound(lambda, lambda),
			f.CondBound(lambda, 10*lambda))
		solve(name, f.F)
		if f.Rank() != rank {
			t.Errorf("%s: rank %d", name, f.Rank())
		}
	}
	for _, ratio := range []string{" 1", " 10"} {
		r, u, z := iterations["RPCholesky"+ratio], iterations["Nyström"+ratio], iterations["features"+ratio]
		if r > u+2 || 3*u > 2*z {
			t.Errorf("λ_p = λ·%s: RPCholesky %d, Nyström %d, features %d iterations", ratio, r, u, z)
		}
	}
}
