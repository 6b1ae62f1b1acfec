package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/baseline"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

var losses = []baseline.Loss{baseline.Square, baseline.Hinge}

// value is the loss written plainly.
func value(l baseline.Loss, y, o float64) float64 {
	if l == baseline.Square {
		return 0.5 * math.Pow(y-o, 2)
	}
	return math.Max(0, 1-y*o)
}

// TestLoss holds values, proximal points and conjugates to a search over a fine grid and to
// the inequalities that define them.
func TestLoss(t *testing.T) {
	for _, l := range losses {
		for _, y := range []float64{1, -1} {
			for _, rho := range []float64{0.02, 0.5, 1, 3, 200} {
				for v := -4.0; v <= 4; v += 0.23 {
					o := l.Prox(y, v, rho)
					f := func(o float64) float64 { return value(l, y, o) + rho/2*(o-v)*(o-v) }
					// f is ρ-strongly convex: f(o') ≥ f(o) + ρ/2·(o'−o)² at its minimum.
					for _, h := range []float64{1, 0.1, 1e-3, 1e-5} {
						for _, d := range []float64{h, -h} {
							if low := f(o) + rho/2*d*d - 1e-14*(1+rho); f(o+d) < low {
								t.Errorf("%v y = %g v = %g ρ = %g: prox %g, but %g has a value less by %g", l, y, v,
									rho, o, o+d, low-f(o+d))
							}
						}
					}
				}
			}
			for o := -30.0; o <= 30; o += 0.37 {
				if got, want := l.Value(y, o), value(l, y, o); math.Abs(got-want) > 1e-12*(1+want) {
					t.Errorf("%v(%g, %g) = %g, want %g", l, y, o, got, want)
				}
			}
			for u := -1.5; u <= 1.5; u += 0.125 {
				best := math.Inf(-1)
				for o := -40.0; o <= 40; o += 0.001 {
					best = math.Max(best, u*o-value(l, y, o))
				}
				got := l.Conjugate(y, u)
				inside := l == baseline.Square || -u*y >= 0 && -u*y <= 1
				if inside && math.Abs(got-best) > 1e-6 || !inside && !(math.IsInf(got, 1) && best > 3) {
					t.Errorf("%v*(%g, %g) = %g, at least %g", l, y, u, got, best)
				}
			}
		}
		if p, err := baseline.ParseLoss(l.String()); err != nil || p != l {
			t.Errorf("%v: %v", l, err)
		}
	}
	if _, err := baseline.ParseLoss("huber"); err == nil {
		t.Error("a loss that is none")
	}
}

// lossObjective is F(W), written plainly.
func lossObjective(l baseline.Loss, z, y, w *mat.Dense, lambda float64) float64 {
	var out mat.Dense
	out.Mul(z, w)
	n, t := y.Dims()
	norm := mat.Norm(w, 2)
	sum := lambda / 2 * norm * norm
	for i := range n {
		for j := range t {
			sum += value(l, y.At(i, j), out.At(i, j))
		}
	}
	return sum
}

// lossOptimum is the reference for one loss: the normal equations, or dual coordinate
// ascent. Columns are independent.
func lossOptimum(t testing.TB, l baseline.Loss, z, y *mat.Dense, lambda float64) float64 {
	t.Helper()
	if l == baseline.Square {
		_, best := ridgeOptimum(t, z, y, lambda)
		return best / 2
	}
	_, cols := y.Dims()
	var sum float64
	for j := range cols {
		sum += hingeOptimum(t, z, mat.Col(nil, j, y), lambda)
	}
	return sum
}

// hingeOptimum is dual coordinate ascent (Hsieh et al. 2008): W = Zᵀ(a∘y)/λ, 0 ≤ a ≤ 1.
func hingeOptimum(t testing.TB, z *mat.Dense, y []float64, lambda float64) float64 {
	t.Helper()
	n, s := z.Dims()
	a, w, rnd := make([]float64, n), make([]float64, s), rand.New(rand.NewPCG(1, 2))
	norms := make([]float64, n)
	for i := range n {
		for _, v := range z.RawRowView(i) {
			norms[i] += v * v
		}
	}
	order := rnd.Perm(n)
	for epoch := range 3000 {
		rnd.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			row := z.RawRowView(i)
			var o float64
			for k, v := range row {
				o += v * w[k]
			}
			next := math.Max(0, math.Min(1, a[i]+lambda*(1-y[i]*o)/norms[i]))
			if d := (next - a[i]) * y[i] / lambda; d != 0 {
				for k, v := range row {
					w[k] += d * v
				}
				a[i] = next
			}
		}
		if epoch%10 != 9 {
			continue
		}
		primal := lossObjective(baseline.Hinge, z, mat.NewDense(n, 1, y), mat.NewDense(s, 1, w), lambda)
		var dual, norm float64
		for i := range n {
			dual += a[i]
		}
		for _, v := range w {
			norm += v * v
		}
		if dual -= lambda / 2 * norm; primal-dual < 4e-7*primal {
			return primal
		}
	}
	t.Fatal("reference: the dual ascent did not converge")
	return 0
}

// targetsOf returns t columns of targets of the points: ±1 where the loss wants classes.
func targetsOf(l baseline.Loss, x *points.Dense, t int) *mat.Dense {
	y := wave(x, t)
	if l != baseline.Square {
		y = signs(y)
	}
	return y
}

// TestADMM2000 is the size at which every method must reach its optimum to 1e-6.
func TestADMM2000(t *testing.T) {
	const n, d, s, lambda = 2000, 6, 500, 1
	x := draw(12, n, d)
	m := sample(t, gaussian, d, s)
	z := denseZ(t, m, x)
	for _, l := range losses {
		y := targetsOf(l, x, 1)
		best := lossOptimum(t, l, z, y, lambda)
		for _, blocks := range []int{1, 3} {
			a := newADMM(t, m, x, lambda, y, l, &baseline.ADMMOptions{FeatureBlocks: blocks})
			r := solved(t, a, &baseline.ADMMSolve{Rho: 0.5, Tol: 1e-6, MaxIter: 8000, Every: 100})
			own := lossObjective(l, z, y, r.W, lambda)
			if r.Status != pcg.Converged || !(math.Abs(r.Objective-best) <= 1e-6*best) ||
				!(math.Abs(own-r.Objective) <= 1e-10*best) || !(r.Dual <= best*(1+1e-9)) {
				t.Errorf("%v: objective %.10g, of W %.10g, optimum %.10g", r, r.Objective, own, best)
			}
		}
	}
}

// TestADMMDual: after a few iterations with any ρ the dual value is a lower bound that is of use: not
// below 0 and not above the optimum.
func TestADMMDual(t *testing.T) {
	const n, d, s, lambda = 200, 4, 40, 0.1
	x := draw(31, n, d)
	m := sample(t, gaussian, d, s)
	z := denseZ(t, m, x)
	for _, l := range losses {
		y := targetsOf(l, x, 1)
		best := lossOptimum(t, l, z, y, lambda)
		a := newADMM(t, m, x, lambda, y, l, nil)
		for _, rho := range []float64{0.001, 0.03, 1, 30} {
			for _, k := range []int{1, 10} {
				r := solved(t, a, &baseline.ADMMSolve{Rho: rho, Tol: 1e-12, MaxIter: k})
				if !(r.Dual >= 0 && r.Dual <= best && r.Gap >= 0 && r.Gap <= 1) || l != baseline.Square && r.Dual == 0 {
					t.Errorf("%v, ρ = %g, %d iterations: dual value %g, gap %g, optimum %g", l, rho, k, r.Dual, r.Gap,
						best)
				}
			}
		}
	}
}

// TestADMMBlocks: uneven blocks, several columns, sparse points, a TensorSketch; and the
// residual test alone.
func TestADMMBlocks(t *testing.T) {
	const n, d, lambda = 203, 4, 2
	x := draw(21, n, d)
	for _, c := range []struct {
		dist feature.Dist
		s    int
		b    int
	}{{gaussian, 67, 4}, {sketched, 40, 2}, {gaussian, 300, 1}} {
		m := sample(t, c.dist, d, c.s)
		z := denseZ(t, m, x)
		for _, l := range losses {
			y := targetsOf(l, x, 3)
			a := newADMM(t, m, sparse(x), lambda, y, l, &baseline.ADMMOptions{FeatureBlocks: c.b})
			r := solved(t, a, &baseline.ADMMSolve{Rho: 0.5, Tol: 3e-7, MaxIter: 20000, Every: 1000})
			best := lossOptimum(t, l, z, y, lambda)
			if r.Status != pcg.Converged || !(math.Abs(r.Objective-best) <= 1e-6*best) || r.Gap > 1e-5 {
				t.Errorf("%v, %v: objective %.10g, optimum %.10g", c, r, r.Objective, best)
			}
			if own := lossObjective(l, z, y, r.W, lambda); !(math.Abs(own-r.Objective) <= 1e-10*best) {
				t.Errorf("%v, %v: objective of W %.10g", c, r, own)
			}
		}
	}
}

// TestADMMIsRandomFeatures: with the square loss W is that of RandomFeatures with the same λ.
func TestADMMIsRandomFeatures(t *testing.T) {
	x := draw(22, 400, 3)
	y := wave(x, 2)
	m := sample(t, gaussian, 3, 64)
	rf := testkit.Must(baseline.RandomFeatures(context.Background(), m, x, 0.5, y, nil))
	a := newADMM(t, m, x, 0.5, y, baseline.Square, nil)
	grid, err := a.TuneRho(context.Background(), []float64{0.01, 0.3, 100}, 50)
	if err != nil || grid.Best != 0.3 || len(grid.Objective) != 3 ||
		!(grid.Objective[1] < grid.Objective[0] && grid.Objective[1] < grid.Objective[2]) {
		t.Fatalf("%v, %v", grid, err)
	}
	r := solved(t, a, &baseline.ADMMSolve{Rho: grid.Best, Tol: 1e-11, MaxIter: 5000, Every: 5000})
	var d mat.Dense
	d.Sub(r.W, rf.W)
	if e := mat.Norm(&d, 2) / mat.Norm(rf.W, 2); !(e < 1e-8) {
		t.Errorf("W has an error of %.3g: %v", e, r)
	}
	z := draw(23, 40, 3)
	f := testkit.Must(r.Predict(context.Background(), z))
	want, err := rf.Predict(context.Background(), z)
	if err != nil || !mat.EqualApprox(f, want, 1e-7) {
		t.Errorf("predictions differ, %v", err)
	}
}

func TestADMMSameBits(t *testing.T) {
	x := draw(24, 900, 3)
	y := signs(wave(x, 2))
	m := sample(t, gaussian, 3, 150)
	before := accel.Threads()
	defer accel.SetThreads(before)
	for _, blocks := range []baseline.ADMMOptions{{FeatureBlocks: 2}, {}} {
		var want *mat.Dense
		for _, threads := range []int{1, 2, 3} {
			accel.SetThreads(threads)
			a := newADMM(t, m, x, 1, y, baseline.Hinge, &blocks)
			r, err := a.Solve(context.Background(), &baseline.ADMMSolve{MaxIter: 7})
			if err != nil || r.Status != pcg.MaxIterations || r.Iterations != 7 || len(r.History) != 1 {
				t.Fatal(r, err)
			}
			if want == nil {
				want = r.W
			}
			if !mat.Equal(r.W, want) {
				t.Errorf("%v: other bits on %d threads", blocks, threads)
			}
		}
	}
}

func TestADMMErrors(t *testing.T) {
	ctx := context.Background()
	x := draw(25, 60, 2)
	y := wave(x, 1)
	m := sample(t, gaussian, 2, 20)
	testkit.Fails(t, testkit.ErrOf(baseline.NewADMM(ctx, m, x, 1, y, baseline.Square,
		&baseline.ADMMOptions{Memory: 1000})), "n = 60, s = 20, 1 blocks")
	far := draw(25, 60, 2)
	far.Row(3)[0] = 1e30
	testkit.Fails(t, testkit.ErrOf(baseline.NewADMM(ctx, sample(t, sketched, 2, 20), far, 1, y, baseline.Square, nil)),
		"point 3")
	a := newADMM(t, m, x, 1, y, baseline.Square, nil)
	testkit.Panics(t, map[string]func(){
		"rows": func() { _, _ = baseline.NewADMM(ctx, m, x, 1, targets(1, 59, 1), baseline.Square, nil) },
		"dim":  func() { _, _ = baseline.NewADMM(ctx, sample(t, gaussian, 3, 5), x, 1, y, baseline.Square, nil) },
		"blocks": func() {
			_, _ = baseline.NewADMM(ctx, m, x, 1, y, baseline.Square, &baseline.ADMMOptions{FeatureBlocks: 21})
		},
		"ρ":      func() { _, _ = a.Solve(ctx, &baseline.ADMMSolve{Rho: -1}) },
		"grid":   func() { _, _ = a.TuneRho(ctx, nil, 5) },
		"zero ρ": func() { _, _ = a.TuneRho(ctx, []float64{0}, 5) },
	})
	// Zero targets: W = 0 at once.
	zero := newADMM(t, m, x, 1, mat.NewDense(60, 1, nil), baseline.Square, nil)
	if r, err := zero.Solve(ctx, nil); err != nil || r.Status != pcg.Converged || r.Objective != 0 || r.Gap != 0 ||
		mat.Norm(r.W, 2) != 0 {
		t.Errorf("%v, %v", r, err)
	}
}

// TestADMMInterrupted: what was reached is returned and its objective is that of W.
func TestADMMInterrupted(t *testing.T) {
	x := draw(26, 300, 2)
	y := wave(x, 1)
	m := sample(t, gaussian, 2, 40)
	z := denseZ(t, m, x)
	for _, blocks := range []baseline.ADMMOptions{{}, {FeatureBlocks: 10}} {
		a := newADMM(t, m, x, 1, y, baseline.Square, &blocks)
		ctx, cancel := context.WithCancel(context.Background())
		stop := errors.New("enough")
		for _, c := range []struct {
			want    pcg.Status
			monitor func(baseline.ADMMStep) error
			err     error
		}{
			{pcg.Stopped, func(s baseline.ADMMStep) error {
				if s.Iteration == 6 {
					return stop
				}
				return nil
			}, stop},
			{pcg.Canceled, func(s baseline.ADMMStep) error {
				if s.Iteration == 4 {
					cancel()
				}
				return nil
			}, context.Canceled},
		} {
			r, err := a.Solve(ctx, &baseline.ADMMSolve{Tol: 1e-15, Every: 2, Monitor: c.monitor})
			if !errors.Is(err, c.err) || r == nil || r.Status != c.want || r.Iterations > 6 || r.Iterations < 4 {
				t.Fatalf("%v: %v, %v", blocks, r, err)
			}
			if own := lossObjective(baseline.Square, z, y, r.W, 1); math.Abs(own-r.Objective) > 1e-10*own {
				t.Errorf("%v: objective %g, of W %g", r, r.Objective, own)
			}
		}
		if g, err := a.TuneRho(ctx, []float64{1, 2}, 5); !errors.Is(err, context.Canceled) || g != nil {
			t.Errorf("%v, %v", g, err)
		}
	}
}

func ExampleADMM_Solve() {
	x := points.NewDense(6, 1, []float64{0, 1, 2, 3, 4, 5})
	y := mat.NewDense(6, 1, []float64{-1, -1, -1, 1, 1, 1})
	m, err := feature.Fourier{Kernel: kernel.Gaussian{Sigma: 1}}.Sample(1, 100, rng.New(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := baseline.NewADMM(context.Background(), m, x, 0.1, y, baseline.Hinge,
		&baseline.ADMMOptions{FeatureBlocks: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	rhos, err := a.TuneRho(context.Background(), []float64{0.1, 1, 10}, 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := a.Solve(context.Background(), &baseline.ADMMSolve{Rho: rhos.Best})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v, objective %.2f\n", r.Status, r.Objective)
	// Output:
	// converged, objective 0.39
}
