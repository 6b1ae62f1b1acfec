package krrlab

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// exactKappa returns κ((FFᵀ+λ_pI)⁻¹(K+λI)), K by Eval, and what rounding may change of it, relative.
func exactKappa(t *testing.T, l *Lab, f *points.Dense32) (kappa, room float64) {
	t.Helper()
	x := rows(l.train.X)
	n := len(x)
	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			k.SetSym(i, j, l.cfg.Kernel.Eval(x[i], x[j]))
		}
		k.SetSym(i, i, k.At(i, i)+l.cfg.Lambda)
	}
	m := mat.NewSymDense(n, nil)
	if f != nil {
		z := mat.NewDense(n, f.D, nil)
		for i := range n {
			for j, v := range f.Row(i) {
				z.Set(i, j, float64(v))
			}
		}
		m.SymOuterK(1, z)
	}
	for i := range n {
		m.SetSym(i, i, m.At(i, i)+ridge(l))
	}
	var chol mat.Cholesky
	if !chol.Factorize(m) {
		return math.NaN(), 0
	}
	var lower mat.TriDense
	chol.LTo(&lower)
	var b, c mat.Dense
	if b.Solve(&lower, k) != nil || c.Solve(&lower, b.T()) != nil {
		return math.NaN(), 0
	}
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, (c.At(i, j)+c.At(j, i))/2)
		}
	}
	var eig mat.EigenSym
	if !eig.Factorize(s, false) {
		t.Fatal("no eigenvalues")
	}
	v := eig.Values(nil)
	least := min(l.cfg.Lambda, ridge(l))
	return v[n-1] / v[0], 1e-14 * float64(n) * mat.Trace(k) / least
}

// smooth are n points of which the kernel matrix has few large eigenvalues.
func smooth(n int) points.Points {
	x := points.NewDense(n, 3, nil)
	rng.New(21).Normals(x.Data, 0)
	return x
}

// TestCertainIsCertain: with a kernel wide enough that landmarks leave little, the certain bound of κ is not
// below κ, however K is stored, and fixed16 lets randomly pivoted Cholesky finish.
func TestCertainIsCertain(t *testing.T) {
	train := regression(smooth(240))
	for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Fixed16, gram.Recompute} {
		for _, p := range []approximation{Nystrom{}, RPCholesky{}} {
			for _, lambda := range []float64{1e-2, 1e-4} {
				name := fmt.Sprintf("%v, %v, λ = %g", storage, p, lambda)
				cfg := Config{Kernel: kernel.Gaussian{Sigma: 40}, Lambda: lambda, Precond: sized(p, 60, lambda), Solver: PCG, Storage: storage, Seed: 1}
				l := newLab(t, train, cfg)
				if _, err := l.K(t.Context()); err != nil {
					if storage != gram.Fixed16 || lambda == 1e-2 {
						t.Errorf("%s: %v", name, err)
					}
					continue // 16 bits are too coarse for λ
				}
				kappa, room := exactKappa(t, l, wholeZ(t, l))
				if bound := l.z.low.CondBound(lambda, lambda); !(kappa <= bound*(1+room)) || bound > 1.5 {
					t.Errorf("%s: κ = %.6g, certain bound %.6g", name, kappa, bound)
				}
			}
		}
	}
}

// TestRandomQuality: on small problems drawn at random, with groups far apart, duplicates, widths and λ of
// all sizes, in every storage and with every preconditioner, nothing that Quality calls certain is
// refuted, every interval is one, the probable ones miss no more often than they may, and nothing is refused
// but 16 bits that are too coarse for λ.
func TestRandomQuality(t *testing.T) {
	judged, missed, bounds, refused := 0, 0, 0, 0
	for p := range uint64(120) {
		g := rng.New(31).Sub("problem", p)
		n, d := 12+g.Sub("n").IntN(0, 40), 2+g.Sub("d").IntN(0, 4)
		apart := []float64{0, 0, 10, 1e3, 1e6}[g.Sub("apart").IntN(0, 5)]
		distinct := n/2 + g.Sub("distinct").IntN(0, n)
		x := points.NewDense(n, d, nil)
		for i := range n {
			q := uint64(i % distinct)
			for j := range d {
				x.Row(i)[j] = g.Sub("x", q).Normal(uint64(j))*math.Pow(10, -2*g.Sub("scale").Float64(uint64(j))) + apart*float64(i%2*2-1)
			}
		}
		lambda := math.Pow(10, -8*g.Sub("lambda").Float64(0))
		cfg := Config{
			Kernel: kernel.Gaussian{Sigma: math.Pow(10, 4*g.Sub("sigma").Float64(0)-1)}, Lambda: lambda,
			Storage: []gram.Storage{gram.Auto, gram.Float64, gram.Float32, gram.Fixed16, gram.Recompute}[g.Sub("storage").IntN(0, 5)],
			Solver:  PCG, Seed: p,
		}
		cfg.Precond = None{}
		if m := []approximation{nil, Features{}, Nystrom{}, RPCholesky{}}[g.Sub("precond").IntN(0, 4)]; m != nil {
			cfg.Precond = sized(m, 1+g.Sub("s").IntN(0, n), lambda*math.Pow(10, 2*g.Sub("ridge").Float64(0)-1))
		}
		name := fmt.Sprintf("problem %d: n = %d, %v, λ = %.3g, %#v, %v", p, n, cfg.Kernel, cfg.Lambda, cfg.Precond, cfg.Storage)
		l := newLab(t, regression(x), cfg)
		q, err := l.Quality(t.Context(), QualityOptions{NoSolve: true})
		if err != nil {
			refused++
			if !rightlyRefused(t, l, rows(x), err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		for what, e := range map[string]*estimate.Interval{"κ": &q.Kappa, "λ_min": &q.Min, "λ_max": &q.Max, "exact κ": q.Exact} {
			if !(e.Lo <= e.Hi) || e.Value < e.Lo || e.Value > e.Hi {
				t.Errorf("%s: %s = %+v", name, what, *e)
			}
		}
		kappa, room := exactKappa(t, l, wholeZ(t, l))
		if math.IsNaN(kappa) || room > 1e-3 {
			continue // not known in float64
		}
		judged++
		if q.Certain > 0 {
			bounds++
			if kappa > q.Certain*(1+room) {
				t.Errorf("%s: κ = %.8g, certain bound %.8g", name, kappa, q.Certain)
			}
		}
		if kappa < q.Exact.Lo*(1-room) || kappa > q.Exact.Hi*(1+room) {
			t.Errorf("%s: κ = %.8g, exact in [%.8g, %.8g]", name, kappa, q.Exact.Lo, q.Exact.Hi)
		}
		if kappa < q.Kappa.Lo*(1-room) || kappa > q.Kappa.Hi*(1+room) {
			missed++
			t.Logf("%s: κ = %.8g missed by [%.8g, %.8g], ‖E‖ ≲ %.2g", name, kappa, q.Kappa.Lo, q.Kappa.Hi, q.KError)
		}
	}
	t.Logf("%d judged, %d certain bounds, %d intervals missed, %d refused", judged, bounds, missed, refused)
	if judged < 60 || bounds < 15 || missed > 8 { // of 95 %: P(X > 8) < 0.02 at 100
		t.Errorf("%d judged, %d certain bounds, %d intervals missed", judged, bounds, missed)
	}
}

// TestStoredAllowance: the interval of κ is that of K itself: with 16-bit numbers that shift λ_min by a
// good part of λ it covers κ, as narrow as the allowance lets it be.
func TestStoredAllowance(t *testing.T) {
	alone := 0
	for seed := range uint64(6) {
		train := regression(kinds(120, 4, seed)["float64"])
		cfg := Config{Kernel: kernel.Gaussian{Sigma: 3}, Lambda: 1e-3, Solver: CG, Precond: None{}, Storage: gram.Fixed16, Seed: seed}
		a, err := newLab(t, train, cfg).K(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cfg.Lambda = 2.1 * a.Choice().Error // the least that 16 bits allow, nearly
		l := newLab(t, train, cfg)
		q, err := l.Quality(t.Context(), QualityOptions{NoSolve: true, Width: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		kappa, _ := exactKappa(t, l, nil)
		if !q.Kappa.Covers(kappa) || !q.Kappa.Covers(q.Exact.Value) {
			t.Errorf("seed %d: κ = %.6g, exact %.6g, in %v", seed, kappa, q.Exact.Value, q.Kappa)
		}
		e := q.KError / cfg.Lambda
		if stored := (q.Ritz[len(q.Ritz)-1]) / q.Ritz[0]; math.Abs(stored/kappa-1) > 0.01 {
			alone++ // the stored matrix alone would miss
		}
		if q.Kappa.Hi > 1.05*q.Kappa.Lo*math.Pow((1+e)/(1-e), 2) {
			t.Errorf("seed %d: %v is wider than ‖E‖₂ = %g·λ explains", seed, q.Kappa, e)
		}
	}
	if alone < 4 {
		t.Errorf("only %d of 6 stored matrices have another κ", alone)
	}
}
