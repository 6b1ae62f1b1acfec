package baseline_test

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/baseline"
	"github.com/krrlab/lab/krrlab/direct"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/suite"
)

// mnist returns points of MNIST, ±1 for each class against the rest, and the classes.
func mnist(t *testing.T, n, held int) (x, z points.Points, y *mat.Dense, class []int) {
	t.Helper()
	dir := suite.RealData(t)
	pair, err := datasets.Load(context.Background(), "mnist", &datasets.LoadOptions{Dirs: []string{dir}})
	if err != nil {
		t.Skip(err)
	}
	y = mat.NewDense(n, 10, nil)
	for i := range n {
		for j := range 10 {
			y.Set(i, j, -1)
		}
		y.Set(i, int(pair.Train.Class[i]), 1)
	}
	return pair.Train.X.Slice(0, n), pair.Test.X.Slice(0, held), y, pair.Test.Class[:held]
}

// errorRate is the share of rows of f whose largest entry is not the class.
func errorRate(f *mat.Dense, class []int) float64 {
	wrong := 0
	for i, c := range class {
		row, best := f.RawRowView(i), 0
		for j, v := range row {
			if v > row[best] {
				best = j
			}
		}
		if best != c {
			wrong++
		}
	}
	return float64(wrong) / float64(len(class))
}

// TestMNIST: at n = 5,000, σ = 8.5 and λ = 0.01 the random features method with s = n features
// must be worse than the exact method and approach it as s grows, and ADMM with the square loss must have
// its objective.
func TestMNIST(t *testing.T) {
	const n, held, lambda = 5000, 5000, 0.01
	x, z, y, class := mnist(t, n, held)
	if lib, err := accel.OpenBLAS(); err == nil {
		accel.Use(lib)
		defer accel.Use(nil)
	}
	ctx := context.Background()
	k := kernel.Gaussian{Sigma: 8.5}
	dist := feature.Fourier{Kernel: k}
	_, d := x.Dims()
	rate := func(f *mat.Dense, err error) float64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return errorRate(f, class)
	}
	fit := testkit.Must(direct.Solve(ctx, k, x, lambda, y, nil))
	exact := rate((&model.Model{Kernel: k, Lambda: lambda, X: x, C: fit.X}).Decision(ctx, z, nil))
	t.Logf("%.4f %v", exact, fit)
	fits, last := map[int]*baseline.Result{}, 1.0
	for _, s := range []int{500, 1000, 2000, 5000, 10000} {
		r := testkit.Must(baseline.RandomFeatures(ctx, sample(t, dist, d, s), x, lambda, y, nil))
		fits[s] = r
		e := rate(r.Predict(ctx, z))
		t.Logf("%.4f %v", e, r.Status)
		if r.Status != pcg.Converged || e > last || s <= n && e <= exact {
			t.Errorf("error %.4f, before %.4f, exact %.4f: %v", e, last, exact, r.Status)
		}
		last = e
	}
	r := testkit.Must(baseline.ADMM(ctx, fits[1000].Map, x, lambda, y, &baseline.ADMMOptions{
		Rho: []float64{1e-3, 1e-2, 1e-1, 1, 10}, Tol: 1e-5, MaxIter: 3000}))
	t.Logf("%.4f %v", rate(r.Predict(ctx, z)), r.Status)
	if want := fits[1000].Objective / 2; r.Status != pcg.Converged || math.Abs(r.Objective-want) > 1e-5*want {
		t.Errorf("%v: objective %.9g, of the random features method %.9g", r.Status, r.Objective, want)
	}
}
