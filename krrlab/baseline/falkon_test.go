package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/baseline"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// crossDense returns K_nm, pair by pair.
func crossDense(k kernel.Kernel, x *points.Dense, idx []int) *mat.Dense {
	out := mat.NewDense(x.N, len(idx), nil)
	for i := range x.N {
		for j, c := range idx {
			out.Set(i, j, k.Eval(x.Row(i), x.Row(c)))
		}
	}
	return out
}

// restricted is the reference: with K_mm = QΛQᵀ, eigenvalues below 1e-14 of the largest cut,
// restricted KRR is ridge regression on the features K_nmQΛ^(-1/2).
func restricted(t testing.TB, knm *mat.Dense, idx []int, y *mat.Dense, lambda float64) float64 {
	t.Helper()
	m := len(idx)
	kmm := mat.NewSymDense(m, nil)
	for i := range m {
		for j := i; j < m; j++ {
			kmm.SetSym(i, j, knm.At(idx[i], j))
		}
	}
	var eig mat.EigenSym
	if !eig.Factorize(kmm, true) {
		t.Fatal("reference")
	}
	values := eig.Values(nil)
	var q mat.Dense
	eig.VectorsTo(&q)
	from := 0
	for values[from] < 1e-14*values[m-1] {
		from++
	}
	basis := mat.NewDense(m, m-from, nil)
	for j := from; j < m; j++ {
		for i := range m {
			basis.Set(i, j-from, q.At(i, j)/math.Sqrt(values[j]))
		}
	}
	var z mat.Dense
	z.Mul(knm, basis)
	_, best := ridgeOptimum(t, &z, y, lambda)
	return best
}

// restrictedObjective is ‖K_nmα−Y‖²+λ tr αᵀK_mmα.
func restrictedObjective(knm *mat.Dense, idx []int, y, alpha *mat.Dense, lambda float64) float64 {
	m, t := alpha.Dims()
	var e, p mat.Dense
	e.Mul(knm, alpha)
	kmm := mat.NewDense(m, m, nil)
	for i, c := range idx {
		kmm.SetRow(i, knm.RawRowView(c))
	}
	e.Sub(&e, y)
	p.Mul(kmm, alpha)
	norm := mat.Norm(&e, 2)
	sum := norm * norm
	for i := range m {
		for j := range t {
			sum += lambda * alpha.At(i, j) * p.At(i, j)
		}
	}
	return sum
}

// tilesOff bounds how far the objective of K̃ may be from that of K, ‖K̃α−Kα‖ being r.Rounding·‖Kα‖.
func tilesOff(r *baseline.FalkonResult, y *mat.Dense) float64 {
	size := mat.Norm(y, 2)
	return 1e-9*size*size + 4*r.Rounding*size*size
}

// TestFalkon2000 is the size at which every method must reach its optimum to 1e-6.
func TestFalkon2000(t *testing.T) {
	const n, d, m, lambda = 2000, 6, 300, 0.02
	x := draw(31, n, d)
	y := wave(x, 2)
	k := kernel.Gaussian{Sigma: 2}
	for _, o := range []baseline.FalkonOptions{{Tol: 1e-5}, {Float64: true, Tol: 1e-6}, {Stream: true, Tol: 1e-5}} {
		r, err := baseline.Falkon(context.Background(), k, x, lambda, y, m, rng.New(5), &o)
		if err != nil {
			t.Fatal(err)
		}
		knm := crossDense(k, x, r.Indices)
		best := restricted(t, knm, r.Indices, y, lambda)
		own := restrictedObjective(knm, r.Indices, y, r.Alpha, lambda)
		if r.Status != baseline.Converged || !(math.Abs(own-best) <= 1e-6*best) || !(math.Abs(r.Objective-own) <= tilesOff(r, y)) {
			t.Errorf("%v: objective %.10g, of α %.10g, optimum %.10g", r, r.Objective, own, best)
		}
		last := r.History[len(r.History)-1]
		if len(r.History) != r.Iterations || !(math.Abs(last.Objective-own) <= 1e-4*best) || r.Cond > 300 || r.Iterations > 90 || r.Kept == o.Stream {
			t.Errorf("%v: %d steps, the last %+v, κ ≥ %g", r, len(r.History), last, r.Cond)
		}
		f, err := r.Predict(context.Background(), x)
		if err != nil {
			t.Fatal(err)
		}
		var want mat.Dense
		want.Mul(knm, r.Alpha)
		if !mat.EqualApprox(f, &want, 1e-3) {
			t.Errorf("%v: predictions differ", r)
		}
	}
}

// TestFalkonKernels: all kernels, sparse points, one centre, all points as centres.
func TestFalkonKernels(t *testing.T) {
	const n = 180
	x := draw(32, n, 3)
	y := wave(x, 3)
	for _, k := range []kernel.Kernel{
		kernel.Gaussian{Sigma: 1.5}, kernel.Laplacian{Sigma: 3}, kernel.Matern52{Sigma: 2},
		kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 3},
		kernel.Func{Name: "plain", F: func(x, z []float64) float64 { return 1 / (1 + math.Abs(x[0]-z[0])) }},
	} {
		for _, m := range []int{1, 40, n} {
			for _, o := range []baseline.FalkonOptions{{Tol: 1e-5, Float64: true}, {Stream: true}} {
				r, err := baseline.Falkon(context.Background(), k, sparse(x), 0.1, y, m, rng.New(6), &o)
				if err != nil {
					t.Errorf("%v m = %d: %v", k, m, err)
					continue
				}
				knm := crossDense(k, x, r.Indices)
				best := restricted(t, knm, r.Indices, y, 0.1)
				own := restrictedObjective(knm, r.Indices, y, r.Alpha, 0.1)
				if r.Status != baseline.Converged || !(math.Abs(own-best) <= 1e-6*best) || !(math.Abs(r.Objective-own) <= tilesOff(r, y)) {
					t.Errorf("%v m = %d %+v: %v: objective %.10g, of α %.10g, optimum %.10g", k, m, o, r, r.Objective, own, best)
				}
			}
		}
	}
}

// TestFalkonFar: points far from zero beside their spread.
func TestFalkonFar(t *testing.T) {
	const n, lambda = 300, 1.0
	x := points.NewDense(n, 1, nil)
	rng.New(34).Float64s(x.Data, 0)
	for i := range x.Data {
		x.Data[i] = 1.7e9 + 1e4*x.Data[i]
	}
	y := targets(34, n, 1)
	k := kernel.Gaussian{Sigma: 1e3}
	for _, o := range []baseline.FalkonOptions{{Tol: 1e-6, Float64: true}, {Tol: 2e-5}} { // float32 tiles are off by 1e-5
		r, err := baseline.Falkon(context.Background(), k, x, lambda, y, 60, rng.New(8), &o)
		if err != nil {
			t.Fatal(err)
		}
		knm := crossDense(k, x, r.Indices)
		best := restricted(t, knm, r.Indices, y, lambda)
		own := restrictedObjective(knm, r.Indices, y, r.Alpha, lambda)
		if r.Status != baseline.Converged || !(math.Abs(own-best) <= 1e-6*best) {
			t.Errorf("%+v: %v: objective of α %.10g, optimum %.10g", o, r, own, best)
		}
	}
}

// TestFalkonIsDirect: with all points as centres it is the exact method.
func TestFalkonIsDirect(t *testing.T) {
	x := draw(33, 250, 3)
	y := wave(x, 1)
	k := kernel.Gaussian{Sigma: 1}
	direct, err := baseline.Direct(context.Background(), k, x, 0.3, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := baseline.Falkon(context.Background(), k, x, 0.3, y, 250, rng.New(7), &baseline.FalkonOptions{Float64: true, Tol: 1e-8})
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.Predict(context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	var want mat.Dense
	a := full(k, x, 0)
	want.Mul(a, direct.X)
	var d mat.Dense
	d.Sub(f, &want)
	if e := mat.Norm(&d, 2) / mat.Norm(&want, 2); !(e < 1e-6) {
		t.Errorf("off by %.3g: %v", e, r)
	}
}

// TestFalkonSingular: doubled centres, and a kernel of low rank.
func TestFalkonSingular(t *testing.T) {
	x := draw(34, 200, 2)
	for i := 100; i < 200; i++ {
		copy(x.Row(i), x.Row(i-100))
	}
	y := wave(x, 1)
	idx := make([]int, 150)
	for i := range idx {
		idx[i] = (i * 7) % 200
	}
	idx[149] = idx[0]
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 2}, kernel.Polynomial{Gamma: 1, Degree: 1}} {
		for _, wide := range []bool{true, false} {
			r, err := baseline.Falkon(context.Background(), k, x, 0.05, y, 0, rng.New(8), &baseline.FalkonOptions{Indices: idx, Float64: wide, Tol: 1e-3})
			if err != nil {
				t.Errorf("%v: %v", k, err)
				continue
			}
			knm := crossDense(k, x, idx)
			best := restricted(t, knm, idx, y, 0.05)
			if own := restrictedObjective(knm, idx, y, r.Alpha, 0.05); r.Status != baseline.Converged || !(math.Abs(own-best) <= 1e-6*best) {
				t.Errorf("%v: objective of α %.10g, optimum %.10g", r, own, best)
			}
		}
	}
	// A function that is no kernel.
	bad := kernel.Func{Name: "not psd", F: func(x, z []float64) float64 { return math.Abs(x[0] - z[0]) }}
	if _, err := baseline.Falkon(context.Background(), bad, x, 0.05, y, 20, rng.New(8), nil); err == nil || !strings.Contains(err.Error(), "not positive semidefinite") {
		t.Errorf("no kernel: %v", err)
	}
}

func TestFalkonSameBits(t *testing.T) {
	x := draw(35, 900, 3)
	y := wave(x, 2)
	before := accel.Threads()
	defer accel.SetThreads(before)
	for _, o := range []baseline.FalkonOptions{{}, {Stream: true}, {Float64: true}} {
		var want *mat.Dense
		for _, threads := range []int{1, 2, 3} {
			accel.SetThreads(threads)
			r, err := baseline.Falkon(context.Background(), kernel.Gaussian{Sigma: 2}, x, 0.01, y, 120, rng.New(9), &o)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = r.Alpha
			}
			if !mat.Equal(r.Alpha, want) {
				t.Errorf("%+v: other bits on %d threads", o, threads)
			}
		}
	}
}

func TestFalkonErrors(t *testing.T) {
	ctx := context.Background()
	x := draw(36, 90, 2)
	y := wave(x, 1)
	k := kernel.Gaussian{Sigma: 1}
	g := rng.New(1)
	if _, err := baseline.Falkon(ctx, k, x, -1, y, 9, g, nil); err == nil || !strings.Contains(err.Error(), "λ = -1") {
		t.Errorf("λ: %v", err)
	}
	if _, err := baseline.Falkon(ctx, kernel.Gaussian{}, x, 1, y, 9, g, nil); err == nil {
		t.Error("σ = 0 accepted")
	}
	nan := draw(36, 90, 2)
	nan.Row(5)[1] = math.NaN()
	if _, err := baseline.Falkon(ctx, k, nan, 1, y, 9, g, nil); err == nil || !strings.Contains(err.Error(), "5") {
		t.Errorf("NaN: %v", err)
	}
	far := draw(36, 90, 2)
	far.Row(5)[1] = 1e150
	if _, err := baseline.Falkon(ctx, kernel.Polynomial{Gamma: 1, Degree: 3}, far, 1, y, 9, g, &baseline.FalkonOptions{Float64: true}); err == nil {
		t.Error("an infinite kernel accepted")
	}
	var limit *baseline.LimitError
	if _, err := baseline.Falkon(ctx, k, x, 1, y, 9, g, &baseline.FalkonOptions{Memory: 5000}); !errors.As(err, &limit) || !strings.Contains(err.Error(), "n = 90, m = 9") {
		t.Errorf("memory: %v", err)
	}
	y2 := wave(draw(36, 4000, 2), 1)
	r, err := baseline.Falkon(ctx, k, draw(36, 4000, 2), 1, y2, 9, g, &baseline.FalkonOptions{Memory: baseline.FalkonNeed(4000, 9, 1, false, true) - 1})
	if err != nil || r.Kept || r.Bytes >= baseline.FalkonNeed(4000, 9, 1, false, true) {
		t.Errorf("%v, %v", r, err)
	}
	for name, f := range map[string]func(){
		"rows":    func() { _, _ = baseline.Falkon(ctx, k, x, 1, targets(1, 89, 1), 9, g, nil) },
		"centres": func() { _, _ = baseline.Falkon(ctx, k, x, 1, y, 91, g, nil) },
		"index":   func() { _, _ = baseline.Falkon(ctx, k, x, 1, y, 0, g, &baseline.FalkonOptions{Indices: []int{90}}) },
		"options": func() { _, _ = baseline.Falkon(ctx, k, x, 1, y, 9, g, &baseline.FalkonOptions{MaxIter: -1}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestFalkonInterrupted(t *testing.T) {
	x := draw(37, 400, 4)
	y := wave(x, 1)
	k := kernel.Gaussian{Sigma: 2}
	stop := errors.New("enough")
	ctx, cancel := context.WithCancel(context.Background())
	for _, c := range []struct {
		want baseline.Status
		err  error
		now  func() error
	}{
		{baseline.Stopped, stop, func() error { return stop }},
		{baseline.Canceled, context.Canceled, func() error { cancel(); return nil }},
	} {
		r, err := baseline.Falkon(ctx, k, x, 0.01, y, 100, rng.New(2), &baseline.FalkonOptions{Tol: 1e-12, Monitor: func(s baseline.FalkonStep) error {
			if s.Iteration == 3 {
				return c.now()
			}
			return nil
		}})
		if !errors.Is(err, c.err) || r == nil || r.Status != c.want || r.Iterations != 3 || r.Alpha == nil || !math.IsNaN(r.Objective) || len(r.History) != 3 {
			t.Errorf("%v: %v", r, err)
		}
	}
	if r, err := baseline.Falkon(ctx, k, x, 0.01, y, 100, rng.New(2), nil); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("%v, %v", r, err)
	}
	r, err := baseline.Falkon(context.Background(), k, x, 0.01, y, 100, rng.New(2), &baseline.FalkonOptions{MaxIter: 2})
	if err != nil || r.Status != baseline.MaxIterations || r.Iterations != 2 {
		t.Errorf("%v, %v", r, err)
	}
}

func ExampleFalkon() {
	x := points.NewDense(6, 1, []float64{0, 1, 2, 3, 4, 5})
	y := mat.NewDense(6, 1, []float64{1, 2, 3, 3, 2, 1})
	r, err := baseline.Falkon(context.Background(), kernel.Gaussian{Sigma: 1}, x, 0.01, y, 0, rng.New(1), &baseline.FalkonOptions{Indices: []int{0, 2, 3, 5}})
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := r.Predict(context.Background(), x)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v, %d centres\n%.1f\n", r.Status, r.M, mat.Formatted(f.T()))
	// Output:
	// converged, 4 centres
	// [1.1  1.8  3.0  3.0  1.8  1.1]
}
