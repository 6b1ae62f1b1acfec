package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/experiments/baseline"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

var (
	gaussian = feature.Fourier{Kernel: kernel.Gaussian{Sigma: 2}}
	sketched = feature.TensorSketch{Kernel: kernel.Polynomial{Gamma: 0.1, Coef0: 1, Degree: 3}}
)

// sampleFeatures draws s features of points in R^d.
func sampleFeatures(t testing.TB, dist feature.Dist, d, s int) feature.Map {
	t.Helper()
	m := must(dist.Sample(d, s, rng.New(1).Sub("features")))
	return m
}

// smoothTargets returns t columns of smooth targets with some noise.
func smoothTargets(x *points.Dense, t int) *mat.Dense {
	noise := randomTargets(9, x.N, t)
	y := mat.NewDense(x.N, t, nil)
	for i := range x.N {
		for j := range t {
			y.Set(i, j, math.Sin(x.Row(i)[j%x.D]+x.Row(i)[(j+1)%x.D])+0.1*noise.At(i, j))
		}
	}
	return y
}

// denseZ returns the stored features Z in float64.
func denseZ(t testing.TB, m feature.Map, x points.Points) *mat.Dense {
	t.Helper()
	z := must(feature.Matrix(context.Background(), m, x, nil))
	out := mat.NewDense(z.N, z.D, nil)
	for i := range z.N {
		for j, v := range z.Row(i) {
			out.Set(i, j, float64(v))
		}
	}
	return out
}

// ridgeOptimum returns the reference: W from the normal equations, by gonum's Cholesky factorization, and
// ‖ZW−Y‖_F²+λ‖W‖_F².
func ridgeOptimum(t testing.TB, z, y *mat.Dense, lambda float64) (*mat.Dense, float64) {
	t.Helper()
	_, s := z.Dims()
	a := mat.NewSymDense(s, nil)
	a.SymOuterK(1, z.T())
	for i := range s {
		a.SetSym(i, i, a.At(i, i)+lambda)
	}
	var w, projected mat.Dense
	projected.Mul(z.T(), y)
	var factor mat.Cholesky
	if !factor.Factorize(a) || factor.SolveTo(&w, &projected) != nil {
		t.Fatal("reference")
	}
	return &w, ridgeObjective(z, y, &w, lambda)
}

// ridgeObjective returns ‖ZW−Y‖_F²+λ‖W‖_F².
func ridgeObjective(z, y, w *mat.Dense, lambda float64) float64 {
	var residual mat.Dense
	residual.Mul(z, w)
	residual.Sub(&residual, y)
	residualNorm, weightNorm := mat.Norm(&residual, 2), mat.Norm(w, 2)
	return residualNorm*residualNorm + lambda*weightNorm*weightNorm
}

// TestRandomFeatures compares W and the objective with the dense solution, also if products are in float32.
func TestRandomFeatures(t *testing.T) {
	for _, c := range []struct {
		n, d, s int
		dist    feature.Dist
	}{{700, 4, 1, gaussian}, {700, 4, 90, sketched}, {700, 4, 300, gaussian}, {700, 4, 900, sketched},
		{2000, 6, 500, gaussian}, {2000, 6, 2100, gaussian}} {
		const lambda = 0.05
		x, label := randomPoints(11, c.n, c.d), fmt.Sprint(c)
		y := smoothTargets(x, 3)
		r := must(baseline.RandomFeatures(t.Context(), sampleFeatures(t, c.dist, c.d, c.s), x, lambda, y, nil))
		z := denseZ(t, r.Map, x)
		w, best := ridgeOptimum(t, z, y, lambda)
		expectNear(t, label, r.Objective, best, 1e-10*best)
		expectNear(t, label, ridgeObjective(z, y, r.W, lambda), r.Objective, 1e-10*best)
		var difference mat.Dense
		difference.Sub(r.W, w)
		expectNear(t, label, mat.Norm(&difference, 2), 0, 1e-6*mat.Norm(w, 2))
		if r.Status != pcg.Converged || !(r.Residual <= 1e-9) || r.Iterations > 10 {
			t.Errorf("%s: %v, %d iterations, residual %.3g", label, r.Status, r.Iterations, r.Residual)
		}
	}
}

// TestSameBits compares the results with one, two and three threads.
func TestSameBits(t *testing.T) {
	x := randomPoints(24, 900, 3)
	y := signs(smoothTargets(x, 2))
	m := sampleFeatures(t, gaussian, 3, 150)
	before := accel.Threads()
	defer accel.SetThreads(before)
	for name, fit := range map[string]func() (*baseline.Result, error){
		"features": func() (*baseline.Result, error) { return baseline.RandomFeatures(t.Context(), m, x, 1, y, nil) },
		"1 block": func() (*baseline.Result, error) {
			return baseline.ADMM(t.Context(), m, x, 1, y, &baseline.ADMMOptions{Loss: baseline.Hinge, MaxIter: 7})
		},
		"2 blocks": func() (*baseline.Result, error) {
			return baseline.ADMM(t.Context(), m, x, 1, y, &baseline.ADMMOptions{Blocks: 2, MaxIter: 7})
		},
	} {
		var want *mat.Dense
		for _, threads := range []int{1, 2, 3} {
			accel.SetThreads(threads)
			r := must(fit())
			if want == nil {
				want = r.W
			}
			if !mat.Equal(r.W, want) {
				t.Errorf("%s: other bits on %d threads", name, threads)
			}
		}
	}
}

// TestFeaturePredict compares predictions with products of the dense features.
func TestFeaturePredict(t *testing.T) {
	x, other := randomPoints(14, 300, 3), randomPoints(15, 700, 3)
	y := smoothTargets(x, 2)
	for _, dist := range []feature.Dist{gaussian, sketched} {
		r := must(baseline.RandomFeatures(context.Background(), sampleFeatures(t, dist, 3, 120), toCSR(x), 0.01, y,
			nil))
		predictions := must(r.Predict(context.Background(), other))
		var want mat.Dense
		want.Mul(denseZ(t, r.Map, other), r.W)
		if !mat.EqualApprox(predictions, &want, 1e-12) {
			t.Errorf("%v: predictions differ", dist)
		}
		if _, err := r.Predict(context.Background(), points.NewDense(0, 3, nil)); err == nil {
			t.Error("no points predicted")
		}
	}
}

// TestErrors checks the errors and the panics of both methods.
func TestErrors(t *testing.T) {
	x := randomPoints(18, 600, 3)
	y := smoothTargets(x, 1)
	m := sampleFeatures(t, gaussian, 3, 50)
	farPoint := randomPoints(18, 600, 3)
	farPoint.Row(599)[2] = 1e30
	tooLittle := baseline.Options{Memory: accel.Budget{Limit: 1000}}
	for _, fit := range []func(m feature.Map, x points.Points, y *mat.Dense, options baseline.Options) error{
		func(m feature.Map, x points.Points, y *mat.Dense, options baseline.Options) error {
			_, err := baseline.RandomFeatures(t.Context(), m, x, 1, y, &options)
			return err
		},
		func(m feature.Map, x points.Points, y *mat.Dense, options baseline.Options) error {
			_, err := baseline.ADMM(t.Context(), m, x, 1, y, &baseline.ADMMOptions{Options: options})
			return err
		},
	} {
		expectError(t, fit(sampleFeatures(t, sketched, 3, 40), farPoint, y, baseline.Options{}), "point 599")
		expectError(t, fit(m, x, y, tooLittle), "n = 600, s = 50")
		expectPanic(t, "rows", func() error { return fit(m, x, randomTargets(1, 599, 1), tooLittle) })
		expectPanic(t, "dim", func() error { return fit(sampleFeatures(t, gaussian, 4, 5), x, y, tooLittle) })
	}
	// ZᵀZ has rank 1, and λ is below its rounding error.
	zeros := points.NewDense(600, 3, nil)
	_, err := baseline.RandomFeatures(t.Context(), m, zeros, 1e-18, y, nil)
	expectError(t, err, "not positive definite")
	_, err = baseline.ADMM(t.Context(), m, x, 1, y, &baseline.ADMMOptions{Loss: "huber"})
	expectError(t, err, `unknown loss "huber"`)
	for name, options := range map[string]baseline.ADMMOptions{
		"blocks": {Blocks: 51}, "ρ": {RhoGrid: []float64{1, 0}}, "grid": {RhoGrid: []float64{}}, "τ": {Tol: -1},
	} {
		expectPanic(t, name, func() error {
			_, err := baseline.ADMM(t.Context(), m, x, 1, y, &options)
			return err
		})
	}
}

// TestInterrupted checks that every stage ends if its context ends.
func TestInterrupted(t *testing.T) {
	x := randomPoints(26, 300, 2)
	y := smoothTargets(x, 1)
	m := sampleFeatures(t, gaussian, 2, 40)
	for _, endStage := range []string{"features", "factor", "rho", "solve"} {
		ctx, cancel := context.WithCancel(t.Context())
		o := baseline.Options{Progress: func(stage string, _, _ int) {
			if stage == endStage {
				cancel()
			}
		}}
		_, err := baseline.ADMM(ctx, m, x, 1, y,
			&baseline.ADMMOptions{Options: o, RhoGrid: []float64{1, 2}, Tol: 1e-15})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled in %s: %v", endStage, err)
		}
		if endStage == "features" {
			if _, err = baseline.RandomFeatures(ctx, m, x, 1, y, &o); !errors.Is(err, context.Canceled) {
				t.Errorf("random features: %v", err)
			}
		}
	}
}

// Ridge regression on 400 random features predicts the targets of five points.
func ExampleRandomFeatures() {
	x := points.NewDense(5, 1, []float64{0, 1, 2, 3, 4})
	y := mat.NewDense(5, 1, []float64{1, 2, 3, 2, 1})
	m, err := feature.Fourier{Kernel: kernel.Gaussian{Sigma: 1}}.Sample(1, 400, rng.New(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := baseline.RandomFeatures(context.Background(), m, x, 0.01, y, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := r.Predict(context.Background(), x)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v\n%.1f\n", r.Status, mat.Formatted(f.T()))
	// Output:
	// converged
	// [1.0  2.0  3.0  2.0  1.0]
}

// signs returns the signs of the entries of y, as ±1.
func signs(y *mat.Dense) *mat.Dense {
	n, t := y.Dims()
	out := mat.NewDense(n, t, nil)
	out.Apply(func(i, j int, _ float64) float64 {
		if y.At(i, j) < 0 {
			return -1
		}
		return 1
	}, out)
	return out
}
