package theory

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

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

// products are random combinations of the rows of V_q: A = αV_q and B = βV_q, for which
// ASᵀSBᵀ = α·ZZᵀ·βᵀ. The points have positive coordinates, among which errors of the signs add up.
type products struct {
	x           *points.Dense
	q           int
	gram        *mat.SymDense // V_qV_qᵀ
	alpha, beta *mat.Dense
	size        float64 // ‖A‖_F²‖B‖_F²
}

func newProducts(g rng.Stream, q, d int) *products {
	const n, rows = 10, 6
	p := &products{x: cloud(g, n, d, 0.9), q: q, alpha: normals(g.Sub("alpha"), rows, n), beta: normals(g.Sub("beta"), rows, n)}
	for i, v := range p.x.Data {
		p.x.Data[i] = math.Abs(v)
	}
	p.gram = evaluated(plain(q), p.x)
	p.size = p.squared(p.alpha) * p.squared(p.beta)
	return p
}

// squared returns ‖αV_q‖_F² = tr(αKαᵀ).
func (p *products) squared(alpha *mat.Dense) float64 {
	var b mat.Dense
	b.Product(alpha, p.gram, alpha.T())
	return mat.Trace(&b)
}

// miss returns ‖α(ZZᵀ−K)βᵀ‖_F².
func (p *products) miss(z mat.Matrix) float64 {
	diff := outer(z)
	subtract(diff, p.gram)
	var b mat.Dense
	b.Product(p.alpha, diff, p.beta.T())
	return frobenius(&b)
}

// expected returns its expectation for s features of TensorSketch.
func (p *products) expected(s int) float64 {
	return expected(outer(p.alpha.T()), outer(p.beta.T()), tensorSketchCovariance(p.x, p.q, s))
}

// bound returns (2+3^q)/s·‖A‖_F²‖B‖_F².
func (p *products) bound(s int) float64 {
	return (2 + math.Pow(3, float64(p.q))) / float64(s) * p.size
}

// misses returns ‖ASᵀSBᵀ−ABᵀ‖_F² for n draws of s features.
func (p *products) misses(ctx context.Context, e *experiment, s, n int) ([]float64, error) {
	out, err := e.sample(ctx, fmt.Sprintf("q %d s %d", p.q, s), n, 1, func(_ int, g rng.Stream, out []float64) error {
		z, err := mapped(e.parts.TensorSketch(plain(p.q)), p.x, s, g)
		if err != nil {
			return err
		}
		out[0] = p.miss(z)
		return nil
	})
	return out[0], err
}

// multiplyFeatures is the s of Lemma 4.
func multiplyFeatures(q int, nu, delta float64) int {
	return int(math.Ceil((2 + math.Pow(3, float64(q))) / (nu * nu * delta)))
}

func checkLemma4(ctx context.Context, e *experiment) error {
	const nu = 0.5
	for _, c := range []struct {
		q, d  int
		delta float64
	}{{1, 30, 0.1}, {2, 14, 0.1}, {3, 8, 0.2}} {
		p := newProducts(e.g.Sub("products", uint64(c.q)), c.q, c.d)
		for i, s := range []int{multiplyFeatures(c.q, nu, c.delta), 32, 15} {
			v, err := p.misses(ctx, e, s, e.trials)
			if err != nil {
				return err
			}
			if i == 0 {
				e.share(fmt.Sprintf("share above ν²‖A‖²‖B‖², q = %d, s = %d, δ = %g", c.q, s, c.delta), v, nu*nu*p.size, c.delta)
			}
			e.mean(fmt.Sprintf("mean of ‖ASᵀSBᵀ−ABᵀ‖_F², q = %d, s = %d", c.q, s), v, p.expected(s), p.bound(s))
		}
	}
	return e.anyMatrices(ctx)
}

// anyMatrices does the same with A and B that are not made of tensor products, by S from the
// hashes.
func (e *experiment) anyMatrices(ctx context.Context) error {
	const q, d, rows, s, nu, delta = 2, 4, 3, 220, 0.5, 0.2
	a, b := normals(e.g.Sub("any A"), rows, d*d), normals(e.g.Sub("any B"), rows, d*d)
	var ab mat.Dense
	ab.Mul(a, b.T())
	out, err := e.sample(ctx, "any", e.trials, 1, func(_ int, g rng.Stream, out []float64) error {
		m, err := e.parts.TensorSketch(plain(q)).Sample(d, s, g)
		if err != nil {
			return err
		}
		h, ok := m.(hashed)
		if !ok {
			return fmt.Errorf("a TensorSketch that does not say what its hashes are")
		}
		sk := explicit(h, q, d, s)
		var as, bs, got mat.Dense
		as.Mul(a, sk.T())
		bs.Mul(b, sk.T())
		got.Mul(&as, bs.T())
		got.Sub(&got, &ab)
		out[0] = frobenius(&got)
		return nil
	})
	if err != nil {
		return err
	}
	e.share(fmt.Sprintf("share above ν²‖A‖²‖B‖², any A and B, s = %d, δ = %g", s, delta), out[0], nu*nu*frobenius(a)*frobenius(b), delta)
	return nil
}

func figureLemma4(ctx context.Context, e *experiment) (*plots.Figure, error) {
	sizes := []int{16, 32, 64, 128, 256, 512, 1024}
	var series []plots.Series
	for _, q := range []int{2, 3} {
		p := newProducts(e.g.Sub("products", uint64(q)), q, map[int]int{2: 14, 3: 8}[q])
		bound := plots.Series{Name: fmt.Sprintf("bound (2+3^{q})/s, q = %d", q)}
		exact := plots.Series{Name: fmt.Sprintf("expectation, q = %d", q)}
		mean := plots.Series{Name: fmt.Sprintf("mean of draws, q = %d", q), Style: plots.Points}
		for _, s := range sizes {
			v, err := p.misses(ctx, e, s, e.trials)
			if err != nil {
				return nil, err
			}
			add(&bound, s, p.bound(s)/p.size)
			add(&exact, s, p.expected(s)/p.size)
			add(&mean, s, average(v)/p.size)
		}
		series = append(series, bound, exact, mean)
	}
	f := plots.Sweep("Lemma 4: the error of a product of sketches", "s", "E‖ASᵀSBᵀ − ABᵀ‖_{F}^{2} / ‖A‖_{F}^{2}‖B‖_{F}^{2}", nil, series...)
	f.X.Ticks = floats(sizes)
	return f, nil
}
