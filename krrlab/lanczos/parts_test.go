package lanczos

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestPolynomials: Σ p_j(x)² of T with diagonal 1, 2, 3 and β = 1, 2, 1, by hand: 1, 4, 5½, 3 at x = 5, and
// 1, 1, ½, −½ of −T at 0. Beyond the Ritz values it reaches the limit where it is said to.
func TestPolynomials(t *testing.T) {
	alpha, beta := []float64{1, 2, 3}, []float64{1, 2, 1}
	for _, c := range []struct{ sign, x, sum float64 }{{1, 5, 56.25}, {-1, 0, 2.5}} {
		if christoffel(alpha, beta, c.sign, c.x, c.sum) || !christoffel(alpha, beta, c.sign, c.x, c.sum*(1-1e-15)) {
			t.Errorf("sign %g, x = %g: the sum is not %g", c.sign, c.x, c.sum)
		}
	}
	if christoffel(alpha, beta, 1, 1, 0.5) { // the first row's own
		t.Error("a sum at a Ritz value")
	}
	ritz := Ritz(alpha, beta)
	for _, mass := range []float64{0.5, 0.01, 1e-6} {
		for _, sign := range []float64{1, -1} {
			theta := ritz[2]
			if sign < 0 {
				theta = -ritz[0]
			}
			u := beyond(alpha, beta, sign, theta, mass)
			// At a mass of ½ the sum is above the limit at once.
			if step := 1e-9 * (u - theta); !(u >= theta) || mass < 0.5 && christoffel(alpha, beta, sign, u-step, 1/mass) || !christoffel(alpha, beta, sign, u, 1/mass) {
				t.Errorf("sign %g, mass %g: %g beyond %g", sign, mass, u, theta)
			}
		}
	}
	for _, tiny := range []float64{5e-324, 1e-320, 1e-310, 1e-300, math.NaN()} { // it ends
		if u := beyond([]float64{tiny, tiny}, []float64{tiny, tiny}, 1, 2*tiny, 0.1); u < 2*tiny {
			t.Errorf("%g: %g", tiny, u)
		}
	}
	if u := beyond([]float64{0, 0}, []float64{0, 0}, 1, 0, 0.1); u != 0 {
		t.Errorf("of zeros: %g", u)
	}
}

// TestRitz: eigenvalues of tridiagonal matrices of any order, the last β aside.
func TestRitz(t *testing.T) {
	for n := 1; n <= 7; n++ {
		alpha, beta, a := make([]float64, n), make([]float64, n), mat.NewSymDense(n, nil)
		rng.New(uint64(n)).Normals(alpha, 0)
		for i := range n {
			beta[i] = 1 + float64(i)
			a.SetSym(i, i, alpha[i])
			if i > 0 {
				a.SetSym(i, i-1, beta[i-1])
			}
		}
		had := slices.Clone(alpha)
		for i, want := range eigenvalues(t, a) {
			if got := Ritz(alpha, beta)[i]; math.Abs(got-want) > 1e-13*float64(n) {
				t.Errorf("order %d: %v, want %v", n, got, want)
			}
		}
		if !slices.Equal(alpha, had) || beta[n-1] != float64(n) {
			t.Errorf("order %d: T was changed", n)
		}
	}
}

// TestDot: sums of any number of terms.
func TestDot(t *testing.T) {
	for n := range 14 {
		x, y, want := make([]float64, n), make([]float64, n+1), 0.0
		for i := range n {
			x[i], y[i] = float64(i+1), float64(3*i-7)
			want += x[i] * y[i]
		}
		if got := dot(x, y); got != want {
			t.Errorf("%d terms: %v, want %v", n, got, want)
		}
	}
}

// TestScarce: √(ν/χ²) with the 1 % quantiles of the usual tables.
func TestScarce(t *testing.T) {
	for k, chi := range map[int]float64{2: 0.000157088, 3: 0.114832, 4: 0.872090, 5: 2.558212, 6: 5.229349} {
		nu := float64(k*(k-1)) / 2
		if got, want := scarce(k), math.Sqrt(nu/chi); math.Abs(got-want) > 1e-5*want {
			t.Errorf("%d steps: %g, want %g", k, got, want)
		}
	}
	if scarce(0) != 1 || scarce(1) != 1 {
		t.Error("of nothing")
	}
}

// TestDefect: what should be zero in step 3 of order 12, by hand: (h₂−β₂)²+h₁²+h₀², times 12/3; the slack of it,
// and β taken for 0 in the last step or at rounding level.
func TestDefect(t *testing.T) {
	p := &process{n: 12, h: []float64{0.5, -1, 3, 9}, res: &Result{Beta: []float64{7, 8, 1}}}
	if got := p.asymmetry(3); got != 4*(4+1+0.25) {
		t.Errorf("defect %g", got)
	}
	if got := p.asymmetry(0); got != 0 {
		t.Errorf("defect %g before there is one", got)
	}
	for _, c := range []struct {
		n              int
		beta, want     float64
		alpha          float64
		defect, slacks float64
	}{
		{9, 2, 2, -3, 0, 4 * unit * 3},
		{9, 24 * unit, 0, -3, 0, 4 * unit * 3}, // 8u·3
		{9, 25 * unit, 25 * unit, -3, 0, 4 * unit * 3},
		{9, 2, 2, 1, 0.25, 2*0.5*(1+1.0/3) + 4*unit*2},
		{1, 2, 0, 3, 0, 4 * unit * 3},
	} {
		p := &process{n: c.n, alpha: c.alpha, defect: c.defect, res: &Result{}}
		p.extend(c.beta)
		r := p.res
		if r.Steps != 1 || r.Alpha[0] != c.alpha || r.Beta[0] != c.want || math.Abs(r.Slack-c.slacks) > 1e-14*c.slacks {
			t.Errorf("%+v: β = %g, slack %g in %d steps", c, r.Beta[0], r.Slack, r.Steps)
		}
	}
}

// TestSettled: the defaults, and options that make no sense.
func TestSettled(t *testing.T) {
	if s := (*Options)(nil).settled(1000); s.Steps != 100 || s.Tol != 0.1 || s.Confidence != 0.95 {
		t.Errorf("%+v", s)
	}
	if s := (&Options{Steps: 7, Tol: 2, Confidence: 0.5}).settled(5); s.Steps != 5 || s.Tol != 2 || s.Confidence != 0.5 {
		t.Errorf("%+v", s)
	}
	for _, c := range []struct {
		o    Options
		fits bool
	}{
		{Options{Steps: 1, Tol: -1}, true}, {Options{Ends: Smallest}, true}, {Options{Ends: Largest}, true}, {Options{Norm: true}, true}, {Options{Cond: true}, true},
		{Options{Steps: -1}, false}, {Options{Tol: math.NaN()}, false}, {Options{Ends: Both - 1}, false}, {Options{Ends: Smallest + 1}, false},
		{Options{Norm: true, Ends: Largest}, false}, {Options{Cond: true, Ends: Smallest}, false}, {Options{Norm: true, Cond: true}, false}, {Options{Confidence: 1}, false},
	} {
		var v any
		func() {
			defer func() { v = recover() }()
			c.o.settled(10)
		}()
		if (v == nil) != c.fits {
			t.Errorf("%+v: panic %v", c.o, v)
		}
	}
}

// TestOps: the calls are counted and take time, of which the whole has no less.
func TestOps(t *testing.T) {
	const n, steps = 40, 6
	b := mat.NewDense(n, n, nil)
	rng.New(3).Normals(b.RawMatrix().Data, 0)
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i + 1)
	}
	r, err := RunPencil(t.Context(), diagonal(v), newMetric(t, b), &Options{Steps: steps, Tol: 1e-9})
	if err != nil {
		t.Fatal(err)
	}
	if r.MulTo.Calls != steps || r.SolveTo.Calls != steps+1 || !(r.MulTo.Seconds > 0) || !(r.SolveTo.Seconds > 0) || r.MulTo.Seconds+r.SolveTo.Seconds > r.Seconds {
		t.Errorf("%+v of products, %+v of solves, %g s in all", r.MulTo, r.SolveTo, r.Seconds)
	}
}

// TestEnds: the bounds are of n and k of 1 or more, and of δ between 0 and 1.
func TestEnds(t *testing.T) {
	if mass(1, 0.5) != 1 || APriori(1, 1, 0.5) != 0 || APriori(2, 1, 0.5) != 1 || APriori(5, 5, 0.5) != 0 {
		t.Errorf("at the ends: %g, %g, %g, %g", mass(1, 0.5), APriori(1, 1, 0.5), APriori(2, 1, 0.5), APriori(5, 5, 0.5))
	}
	if got, want := APriori(1000, 100, 0.05), math.Pow(math.Log(1.648*math.Sqrt(1000)/0.05)/199, 2); math.Abs(got-want) > 1e-14*want {
		t.Errorf("%g, want %g", got, want)
	}
	for what, f := range map[string]func(){
		"n = 0": func() { mass(0, 0.5) }, "δ = 0": func() { mass(3, 0) }, "δ = 1": func() { mass(3, 1) }, "δ no number": func() { mass(3, math.NaN()) },
		"APriori, n = 0": func() { APriori(0, 1, 0.5) }, "k = 0": func() { APriori(3, 0, 0.5) }, "APriori, δ = 0": func() { APriori(3, 1, 0) }, "APriori, δ = 1": func() { APriori(3, 1, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			f()
		}()
	}
}

// TestAtZero: where λ_min is 0 nothing is said of κ, and the matrix is not called indefinite.
func TestAtZero(t *testing.T) {
	r := &Result{Min: estimate.Interval{}, Max: estimate.Interval{Value: 2, Lo: 2, Hi: 3}}
	if k := r.Cond(); !math.IsNaN(k.Value) || k.Lo != 1 || !math.IsInf(k.Hi, 1) || r.Indefinite() {
		t.Errorf("%+v, indefinite %v", k, r.Indefinite())
	}
	r.Min = estimate.Interval{Value: 0.5, Lo: 0.25, Hi: 1}
	if k := r.Cond(); k.Value != 4 || k.Lo != 2 || k.Hi != 12 {
		t.Errorf("%+v", k)
	}
}
