package theory

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/adapt"
	"github.com/krrlab/lab/krrlab/lambdap"
	"github.com/krrlab/lab/krrlab/pcg"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Max(1, math.Abs(want))) {
		t.Errorf("%s = %.8g, want %.8g", what, got, want)
	}
}

// TestPresets pins what each preset guarantees (erratum 9).
func TestPresets(t *testing.T) {
	near(t, "hi of the paper's constants", first(adapt.PaperTest.Upper()), 1.432, 5e-4)
	near(t, "lo of the paper's constants", first(adapt.PaperTest.Lower()), 0.672, 7e-4)
	for _, c := range []struct {
		test           adapt.Test
		bound, factor  float64
		atMost, likely float64
	}{
		{adapt.PaperTest, 2.13, 11130, 2.14, 3},
		{adapt.Kappa5, 5, 73.6, 5, 5},
		{adapt.Kappa10, 10, 16, 10, 10},
	} {
		b := c.test.Bound()
		if !(b <= c.atMost && b > 0.98*c.bound) || b > c.likely {
			t.Errorf("%s: κ ≤ %g, want about %g and at most %g", c.test.Name, b, c.bound, c.atMost)
		}
		near(t, c.test.Name+": factor", c.test.FeatureFactor(), c.factor, 5e-3)
	}
	// The paper's own chain: c = 0.21 + 11/15, κ ≤ (1+c)/(1−c).
	c := 0.21 + 11.0/15
	near(t, "the paper's chain", (1+c)/(1-c), 34.3, 1e-3)
}

func first(a, _ float64) float64 { return a }

func sq(x float64) float64 { return x * x }

// TestExtremes compares the closed forms with a fine grid over t.
func TestExtremes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		c := adapt.Test{Theta: rng.Float64(), Alpha: 2 * rng.Float64(), Gamma: rng.Float64() * 0.95}
		switch trial % 5 {
		case 1:
			c.Alpha = 0
		case 2:
			c.Gamma = 0
		case 3:
			c.Theta = 0
		}
		hi, lo := math.Inf(-1), math.Inf(1)
		for i := -4000; i <= 4000; i++ {
			x := math.Pow(10, float64(i)/500) // √t
			if i == -4000 {
				x = 0
			}
			hi = math.Max(hi, (1+sq(math.Sqrt(1+c.Gamma)*x+math.Sqrt(c.Alpha)))/(1+x*x))
			lo = math.Min(lo, (1+sq(math.Max(0, math.Sqrt(1-c.Gamma)*x-math.Sqrt(c.Alpha))))/(1+c.Theta+x*x))
		}
		near(t, "hi", first(c.Upper()), hi, 1e-4)
		near(t, "lo", first(c.Lower()), lo, 1e-4)
		if up, _ := c.Upper(); up < hi*(1-1e-12) {
			t.Errorf("%+v: hi = %g is below a value on the grid, %g", c, up, hi)
		}
		if low, _ := c.Lower(); low > lo*(1+1e-12) {
			t.Errorf("%+v: lo = %g is above a value on the grid, %g", c, low, lo)
		}
	}
}

// psd returns a random positive semi-definite n×n matrix with eigenvalues spread over
// decades, and a nearby one.
func psd(rng *rand.Rand, n int, closeness float64) (k, z *mat.SymDense) {
	v := mat.NewDense(n, n, nil)
	e := mat.NewDense(n, n, nil)
	for i := range n {
		scale := math.Pow(10, 1-4*float64(i)/float64(n))
		for j := range n {
			g := rng.NormFloat64()
			v.Set(j, i, scale*g)
			e.Set(j, i, scale*g*(1+closeness*rng.NormFloat64())+closeness*0.05*rng.NormFloat64())
		}
	}
	k, z = mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	k.SymOuterK(1, v)
	z.SymOuterK(1, e)
	return k, z
}

// eigen returns the eigenvalues of s in increasing order.
func eigen(s mat.Symmetric) []float64 {
	var e mat.EigenSym
	if !e.Factorize(s, false) {
		panic("eigenvalues")
	}
	return e.Values(nil)
}

// extremes returns the extreme eigenvalues of M⁻¹A.
func extremes(k, z *mat.SymDense, lambda, lambdaP float64) (lo, hi float64) {
	n := k.SymmetricDim()
	a, m := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	a.CopySym(k)
	m.CopySym(z)
	for i := range n {
		a.SetSym(i, i, a.At(i, i)+lambda)
		m.SetSym(i, i, m.At(i, i)+lambdaP)
	}
	var chol mat.Cholesky
	if !chol.Factorize(m) {
		panic("Cholesky")
	}
	var l mat.TriDense
	chol.LTo(&l)
	var w, b mat.Dense // b = L⁻¹AL⁻ᵀ
	if w.Solve(&l, a) != nil || b.Solve(&l, w.T()) != nil {
		panic("solve")
	}
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, (b.At(i, j)+b.At(j, i))/2)
		}
	}
	e := eigen(s)
	return e[0], e[n-1]
}

// TestRidgeBound checks the bound on random matrices, and that no λ_p has a smaller
// one than BestRidge.
func TestRidgeBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		k, z := psd(rng, 12, math.Pow(10, -2*rng.Float64()))
		d := mat.NewSymDense(12, nil)
		for i := range 12 {
			for j := i; j < 12; j++ {
				d.SetSym(i, j, k.At(i, j)-z.At(i, j))
			}
		}
		e := eigen(d)
		eta := math.Max(math.Abs(e[0]), math.Abs(e[len(e)-1]))
		lambda := math.Pow(10, -2+3*rng.Float64())
		best := lambda + eta
		least := lambdap.Bound(lambda, best, eta)
		near(t, "the least bound", least, 1+2*eta/lambda, 1e-12)
		for range 10 {
			lp := lambda * math.Pow(10, -3+6*rng.Float64())
			bound := lambdap.Bound(lambda, lp, eta)
			if lo, hi := extremes(k, z, lambda, lp); hi/lo > bound*(1+1e-9) {
				t.Errorf("κ = %g > %g at λ=%g, λ_p=%g, η=%g", hi/lo, bound, lambda, lp, eta)
			}
			if bound < least*(1-1e-12) {
				t.Errorf("the bound %g at λ_p=%g is below the one at λ+η=%g, %g", bound, lp, best, least)
			}
		}
	}
	// Tight: K = diag(1, 0), ZZᵀ = diag(0, 1), λ = λ_p = ½ has κ = 9 = (1+2)².
	k := mat.NewSymDense(2, []float64{1, 0, 0, 0})
	z := mat.NewSymDense(2, []float64{0, 0, 0, 1})
	lo, hi := extremes(k, z, 0.5, 0.5)
	near(t, "κ of the tight case", hi/lo, lambdap.Bound(0.5, 0.5, 1), 1e-12)
	// The true optimum may be on either side of λ+η.
	kappa := func(k1, k2, z1, z2, lambda, lp float64) float64 {
		r1, r2 := (k1+lambda)/(z1+lp), (k2+lambda)/(z2+lp)
		return math.Max(r1, r2) / math.Min(r1, r2)
	}
	near(t, "diag(2,1) at 1.5+2λ, above λ+η = 0.51", kappa(2, 1, 2.5, 0.5, 0.01, 1.52), 1, 1e-12)
	if kappa(100, 0, 1, 0, 0.01, 1e-4) > 1.001 || kappa(100, 0, 1, 0, 0.01, 99.01) < 1000 {
		t.Error("diag(100,0): the optimum is at 1e-4, far below λ+η")
	}
}

// TestTheorem7 measures θ, α, γ on random matrices and checks the κ that follows.
func TestTheorem7(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	used := 0
	for range 300 {
		const n = 10
		k, z := psd(rng, n, math.Pow(10, -3+2.5*rng.Float64()))
		lambda := math.Pow(10, -1+3*rng.Float64())
		c, ok := measure(k, z, lambda, 0.05+0.5*rng.Float64())
		if !ok {
			continue
		}
		used++
		lo, hi := extremes(k, z, lambda, lambda)
		up, _ := c.Upper()
		low, _ := c.Lower()
		if hi > up*(1+1e-8) || lo < low*(1-1e-8) {
			t.Errorf("spectrum [%g, %g] outside [%g, %g] for %+v", lo, hi, low, up, c)
		}
	}
	if used < 100 {
		t.Errorf("only %d of 300 cases were usable", used)
	}
}

// measure returns the least α and γ with which k and z meet the conditions at θ.
func measure(k, z *mat.SymDense, lambda, theta float64) (adapt.Test, bool) {
	n := k.SymmetricDim()
	var e mat.EigenSym
	e.Factorize(z, true)
	vals := e.Values(nil)
	var vecs mat.Dense
	e.VectorsTo(&vecs)
	r := slices.IndexFunc(vals, func(v float64) bool { return v > theta*lambda })
	if r < 0 {
		r = n
	}
	var kv mat.Dense // K in the eigenvectors of ZZᵀ
	kv.Product(vecs.T(), k, &vecs)
	block := func(from, to int) *mat.SymDense {
		s := mat.NewSymDense(to-from, nil)
		for i := from; i < to; i++ {
			for j := i; j < to; j++ {
				s.SetSym(i-from, j-from, (kv.At(i, j)+kv.At(j, i))/2)
			}
		}
		return s
	}
	c := adapt.Test{Theta: theta}
	if r > 0 {
		c.Alpha = eigen(block(0, r))[r-1] / lambda
	}
	if r < n {
		s := block(r, n)
		for i := range n - r {
			for j := i; j < n-r; j++ {
				s.SetSym(i, j, s.At(i, j)/math.Sqrt(vals[r+i]*vals[r+j]))
			}
		}
		g := eigen(s)
		c.Gamma = math.Max(1-g[0], g[len(g)-1]-1)
	}
	return c, c.Gamma < 1 && c.Gamma >= 0
}

// TestMargin checks on random matrices that a relative error within the margin passes
// the test.
func TestMargin(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	used := 0
	for range 2000 {
		k, z := psd(rng, 6, math.Pow(10, -4+3*rng.Float64()))
		lambda := math.Pow(10, -1+3*rng.Float64())
		lo, hi := extremes(k, z, lambda, lambda) // of M⁻¹A
		eps := math.Max(1/lo-1, 1-1/hi)          // (1−ε)A ≼ M ≼ (1+ε)A
		for _, want := range []adapt.Test{adapt.Kappa5, adapt.Kappa10} {
			if eps >= want.Margin() {
				continue
			}
			used++
			if got, ok := measure(k, z, lambda, want.Theta); !ok || got.Alpha > want.Alpha || got.Gamma > want.Gamma {
				t.Errorf("%s: ε = %g < %g and still %+v", want.Name, eps, want.Margin(), got)
			}
		}
	}
	if used < 100 {
		t.Errorf("only %d usable cases", used)
	}
}

// TestIterations checks the count on a diagonal system, where conjugate gradients are
// run in the test, and erratum 11's remark on the residual.
func TestIterations(t *testing.T) {
	if got := pcg.IterationBound(3, 1e-3); got != 7 { // ⌈0.866·7.601⌉
		t.Errorf("pcg.IterationBound(3, 1e-3) = %d, want 7", got)
	}
	if got := pcg.IterationBound(1, 1); got != 1 {
		t.Errorf("pcg.IterationBound(1, 1) = %d, want 1", got)
	}
	rng := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		n, kappa, eps := 60, math.Pow(10, 3*rng.Float64()), math.Pow(10, -1-3*rng.Float64())
		d, y := make([]float64, n), make([]float64, n)
		for i := range n {
			d[i], y[i] = 1+(kappa-1)*rng.Float64(), rng.NormFloat64()
		}
		d[0], d[1] = 1, kappa
		if e := cgError(d, y, pcg.IterationBound(kappa, eps)); e > eps {
			t.Errorf("κ=%g: error %g > %g after %d iterations", kappa, e, eps, pcg.IterationBound(kappa, eps))
		}
	}
	near(t, "Features", Features(3, 10, 0.1), 4*29*100/0.1, 1e-12)
}

// cgError runs conjugate gradients on diag(d)c = y and returns ‖c̃−c‖_A/‖c‖_A.
func cgError(d, y []float64, iters int) float64 {
	n := len(d)
	c, r, p := make([]float64, n), slices.Clone(y), slices.Clone(y)
	rr := dot(r, r)
	for range iters {
		pap := 0.0
		for i := range n {
			pap += d[i] * p[i] * p[i]
		}
		if pap == 0 {
			break
		}
		a := rr / pap
		for i := range n {
			c[i] += a * p[i]
			r[i] -= a * d[i] * p[i]
		}
		next := dot(r, r)
		for i := range n {
			p[i] = r[i] + next/rr*p[i]
		}
		rr = next
	}
	e, norm := 0.0, 0.0
	for i := range n {
		x := y[i] / d[i]
		e += d[i] * (c[i] - x) * (c[i] - x)
		norm += d[i] * x * x
	}
	return math.Sqrt(e / norm)
}

func dot(a, b []float64) (s float64) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func TestMisuse(t *testing.T) {
	for name, f := range map[string]func(){
		"κ < 1":   func() { pcg.IterationBound(0.5, 0.1) },
		"ε = 0":   func() { pcg.IterationBound(3, 0) },
		"q = 0":   func() { Features(0, 1, 0.1) },
		"δ = 1":   func() { Features(2, 1, 1) },
		"λ = 0":   func() { lambdap.Bound(0, 1, 1) },
		"η < 0":   func() { lambdap.Bound(1, 1, -1) },
		"γ = 1":   func() { adapt.Test{Gamma: 1}.Bound() },
		"NaN":     func() { adapt.Test{Theta: math.NaN()}.Bound() },
		"α = inf": func() { adapt.Test{Alpha: math.Inf(1)}.Bound() },
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
