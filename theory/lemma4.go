package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/plots"
)

var lemma4 = Claim{
	Name: "lemma4", Place: "Lemma 4, section 3.2 (Avron, Nguyễn and Woodruff 2014)", Kind: Probability,
	Statement: "For s ≥ (2+3^q)/(ν²δ) and any A, B with d^q columns, P(‖ASᵀSBᵀ − ABᵀ‖_F² ≤ ν²‖A‖_F²‖B‖_F²) ≥ 1−δ;\nby way of E‖ASᵀSBᵀ − ABᵀ‖_F² ≤ (2+3^q)/s·‖A‖_F²‖B‖_F².",
	Measured:  "the share of draws that exceed, for s as stated; and, as Chebyshev's inequality leaves a wide margin there, the mean of ‖·‖_F² against its expectation in closed form, two-sided.",
	Fails:     "features of a wrong scale or with dependent signs have another mean, and exceed in every draw.",
	run:       checkLemma4, figure: figureLemma4,
}

// products are two sets A = αφ(x) and B = βφ(x) of combinations of the images of some points, for
// which ASᵀSBᵀ = α·ZZᵀ·βᵀ; φ(x) is x⊗…⊗x for TensorSketch, and k(x, ·) for any kernel.
type products struct {
	name        string
	x           *points.Dense
	dist        feature.Dist
	cov         func(s int) covariance
	gram        *mat.SymDense // K = φ(x)φ(x)ᵀ
	alpha, beta *mat.Dense
	size        float64 // ‖A‖_F²‖B‖_F² = tr(αKαᵀ)·tr(βKβᵀ)
}

func newProducts(name string, k kernel.Kernel, x *points.Dense, d feature.Dist, cov func(s int) covariance, alpha, beta *mat.Dense) *products {
	p := &products{name: name, x: x, dist: d, cov: cov, gram: evaluated(k, x), alpha: alpha, beta: beta}
	var a, b mat.Dense
	a.Product(alpha, p.gram, alpha.T())
	b.Product(beta, p.gram, beta.T())
	p.size = mat.Trace(&a) * mat.Trace(&b)
	return p
}

// tensorProducts are such products for the kernel (xᵀz)^q and points of R^d with positive coordinates,
// among which errors of the signs add up.
func (e *experiment) tensorProducts(q, d int) *products {
	const n, rows = 10, 6
	g := e.g.Sub("products", uint64(q))
	x := cloud(g, n, d, 0.9)
	for i, v := range x.Data {
		x.Data[i] = math.Abs(v)
	}
	cov := func(s int) covariance { return tensorSketchCovariance(x, q, s) }
	return newProducts(fmt.Sprintf("q %d s", q), plain(q), x, e.parts.TensorSketch(plain(q)), cov, normals(g.Sub("alpha"), rows, n), normals(g.Sub("beta"), rows, n))
}

// expected returns E‖ASᵀSBᵀ−ABᵀ‖_F² for s features.
func (p *products) expected(s int) float64 {
	return expected(outer(p.alpha.T()), outer(p.beta.T()), p.cov(s))
}

// misses returns ‖ASᵀSBᵀ−ABᵀ‖_F² = ‖α(ZZᵀ−K)βᵀ‖_F² of draws of s features.
func (p *products) misses(e *experiment, s int) []float64 {
	return e.sample(fmt.Sprintf("%s %d", p.name, s), e.trials, 1, func(_ int, g rng.Stream, out []float64) {
		diff := outer(mapped(p.dist, p.x, s, g))
		subtract(diff, p.gram)
		var b mat.Dense
		b.Product(p.alpha, diff, p.beta.T())
		out[0] = frobenius(&b)
	})[0]
}

// multiplyBound returns Lemma 4's bound of the expectation over ‖A‖_F²‖B‖_F².
func multiplyBound(q, s int) float64 { return (2 + math.Pow(3, float64(q))) / float64(s) }

// multiplyFeatures is the s of Lemma 4.
func multiplyFeatures(q int, nu, delta float64) int {
	return int(math.Ceil((2 + math.Pow(3, float64(q))) / (nu * nu * delta)))
}

func checkLemma4(e *experiment) {
	const nu = 0.5
	for _, c := range []struct {
		q, d  int
		delta float64
	}{{1, 30, 0.1}, {2, 14, 0.1}, {3, 8, 0.2}} {
		p := e.tensorProducts(c.q, c.d)
		for i, s := range []int{multiplyFeatures(c.q, nu, c.delta), 32, 15} {
			v := p.misses(e, s)
			if i == 0 {
				e.share(fmt.Sprintf("share above ν²‖A‖²‖B‖², q = %d, s = %d, δ = %g", c.q, s, c.delta), v, nu*nu*p.size, c.delta)
				continue
			}
			e.mean(fmt.Sprintf("mean of ‖ASᵀSBᵀ−ABᵀ‖_F², q = %d, s = %d", c.q, s), v, p.expected(s), multiplyBound(c.q, s)*p.size)
		}
	}
	e.anyMatrices()
}

// anyMatrices does the same with A and B that are not made of tensor products, by S from the
// hashes.
func (e *experiment) anyMatrices() {
	const q, d, rows, s, nu, delta = 2, 4, 3, 220, 0.5, 0.2
	a, b := normals(e.g.Sub("any A"), rows, d*d), normals(e.g.Sub("any B"), rows, d*d)
	var ab mat.Dense
	ab.Mul(a, b.T())
	out := e.sample("any", e.trials, 1, func(_ int, g rng.Stream, out []float64) {
		_, h := e.tensorSketch(plain(q), d, s, g)
		sk := explicit(h, q, d, s)
		var as, bs, got mat.Dense
		as.Mul(a, sk.T())
		bs.Mul(b, sk.T())
		got.Mul(&as, bs.T())
		got.Sub(&got, &ab)
		out[0] = frobenius(&got)
	})
	e.share(fmt.Sprintf("share above ν²‖A‖²‖B‖², any A and B, s = %d, δ = %g", s, delta), out[0], nu*nu*frobenius(a)*frobenius(b), delta)
}

func figureLemma4(e *experiment) *plots.Figure {
	sizes := []int{16, 32, 64, 128, 256, 512, 1024}
	var series []plots.Series
	for _, q := range []int{2, 3} {
		p := e.tensorProducts(q, map[int]int{2: 14, 3: 8}[q])
		bound := plots.Series{Name: fmt.Sprintf("bound (2+3^{q})/s, q = %d", q)}
		exact := plots.Series{Name: fmt.Sprintf("expectation, q = %d", q)}
		mean := plots.Series{Name: fmt.Sprintf("mean of draws, q = %d", q), Style: plots.Points}
		for _, s := range sizes {
			v := p.misses(e, s)
			add(&bound, s, multiplyBound(q, s))
			add(&exact, s, p.expected(s)/p.size)
			add(&mean, s, stat.Mean(v, nil)/p.size)
		}
		series = append(series, bound, exact, mean)
	}
	f := plots.Sweep("Lemma 4: the error of a product of sketches", "s", "E‖ASᵀSBᵀ − ABᵀ‖_{F}^{2} / ‖A‖_{F}^{2}‖B‖_{F}^{2}", nil, series...)
	f.X.Ticks = floats(sizes)
	return f
}
