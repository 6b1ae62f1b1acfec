package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

func checkFeatures(e *experiment) {
	gauss, poly := kernel.Gaussian{Sigma: 1.2}, kernel.Polynomial{Gamma: 0.7, Coef0: 0.5, Degree: 2}
	ones := points.NewDense(1, 4, []float64{1, 1, 1, 1})
	x := cloud(e.g.Sub("cloud"), 8, 4, 0.8)
	chain := func(s ...sketch.Dist) feature.Dist {
		c := feature.Chain{Features: e.parts.TensorSketch(poly), Width: 64}
		for i, d := range s {
			c.Sketches = append(c.Sketches, sketch.Level{Dist: d})
			if i < len(s)-1 {
				c.Sketches[i].Width = 32
			}
		}
		return c
	}
	for _, c := range []struct {
		name string
		k    kernel.Kernel
		d    feature.Dist
		x    *points.Dense
		s    int
		cov  covariance // nil: not in closed form
	}{
		{"Fourier", gauss, e.parts.Fourier(gauss), x, 16, fourierCovariance(gauss, x, 16)},
		{"Fourier of a Matérn", kernel.Matern52{Sigma: 1.2}, e.parts.Fourier(kernel.Matern52{Sigma: 1.2}), x, 16, nil},
		{"TensorSketch", poly, e.parts.TensorSketch(poly), x, 15, tensorSketchCovariance(lifted(poly, x), 2, 15)},
		{"TensorSketch of all ones", plain(2), e.parts.TensorSketch(plain(2)), ones, 16,
			tensorSketchCovariance(ones, 2, 16)},
		{"TensorSketch, q = 3", plain(3), e.parts.TensorSketch(plain(3)), ones, 16,
			tensorSketchCovariance(ones, 3, 16)},
		{"chain with SRHT and Gaussian", poly, chain(e.parts.SRHT, e.parts.Gaussian), x, 16, nil},
		{"chain with CountSketch", poly, chain(e.parts.CountSketch), x, 16, nil},
	} {
		e.unbiased(c.name, c.k, c.d, c.x, c.s, c.cov)
	}
	for _, q := range []int{1, 2, 3} {
		e.asMatrix(q)
	}
}

// plain is the kernel (xᵀz)^q.
func plain(q int) kernel.Polynomial { return kernel.Polynomial{Gamma: 1, Degree: q} }

// unbiased compares means over draws of the map.
func (e *experiment) unbiased(name string, k kernel.Kernel, d feature.Dist, x *points.Dense, s int, cov covariance) {
	gram := evaluated(k, x)
	v := normals(e.g.Sub("direction"), x.N, 3)
	square := 0.0
	if one := identity(x.N); cov != nil {
		square = expected(one, one, cov)
	}
	e.try(name, func(_ int, g rng.Stream, t *trial) {
		z := mapped(d, x, s, g)
		var u mat.Dense
		u.Mul(z.T(), v) // Zᵀv
		for j := range 3 {
			want := mat.Inner(v.ColView(j), gram, v.ColView(j))
			t.mean(fmt.Sprintf("mean of vᵀZZᵀv, %s, direction %d", name, j+1), mat.Dot(u.ColView(j), u.ColView(j)),
				want)
		}
		if cov != nil {
			t.mean("mean of ‖ZZᵀ−K‖_F², "+name, frobenius(less(outer(z), gram)), square)
		}
	})
}

// mapped returns Z in float64.
func mapped(d feature.Dist, x *points.Dense, s int, g rng.Stream) *mat.Dense {
	z := mat.NewDense(x.N, s, nil)
	must(d.Sample(x.D, s, g)).MapTo(z.RawMatrix().Data, s, x, new(feature.Workspace))
	return z
}

// hashed is a map that says what its hash functions are. *feature.TensorSketchMap is one.
type hashed interface {
	Hash(t, i int) (h int, g float64)
}

// tensorSketch returns a draw, and its hashes.
func (e *experiment) tensorSketch(k kernel.Polynomial, d, s int, g rng.Stream) (feature.Map, hashed) {
	m := must(e.parts.TensorSketch(k).Sample(d, s, g))
	h, ok := m.(hashed)
	if !ok {
		fail("a TensorSketch that does not say what its hashes are")
	}
	return m, h
}

// explicit returns S, s×d^q, of a draw of TensorSketch to s features of R^d from its hashes:
// column (i₁, …, i_q) has the entry g₁(i₁)⋯g_q(i_q) in row h₁(i₁)+…+h_q(i_q) mod s.
func explicit(m hashed, q, d, s int) *mat.Dense {
	columns := power(d, q)
	out := mat.NewDense(s, columns, nil)
	for c := range columns {
		row, sign := 0, 1.0
		for t, rest := 0, c; t < q; t, rest = t+1, rest/d {
			h, g := m.Hash(t, rest%d)
			row, sign = row+h, sign*g
		}
		out.Set(row%s, c, sign)
	}
	return out
}

func power(d, q int) int {
	p := 1
	for range q {
		p *= d
	}
	return p
}

// tensors returns V_q, n×d^q, whose rows are all ordered products x⊗…⊗x of q coordinates.
func tensors(x *points.Dense, q int) *mat.Dense {
	columns := power(x.D, q)
	v := mat.NewDense(x.N, columns, nil)
	for i := range x.N {
		for c := range columns {
			p := 1.0
			for t, rest := 0, c; t < q; t, rest = t+1, rest/x.D {
				p *= x.Row(i)[rest%x.D]
			}
			v.Set(i, c, p)
		}
	}
	return v
}

// asMatrix compares the features, which go by FFT, with S·v_q(x), and V_qV_qᵀ with K.
func (e *experiment) asMatrix(q int) {
	k := plain(q)
	x := cloud(e.g.Sub("matrix", uint64(q)), 4, 4, 0.8)
	v := tensors(x, q)
	k0 := evaluated(k, x)
	e.try(fmt.Sprintf("matrix %d", q), func(i int, g rng.Stream, t *trial) {
		s := 1 + g.Sub("s").IntN(0, 40)
		m, h := e.tensorSketch(k, x.D, s, g)
		z := mat.NewDense(x.N, s, nil)
		m.MapTo(z.RawMatrix().Data, s, x, new(feature.Workspace))
		var sv mat.Dense
		sv.Mul(v, explicit(h, q, x.D, s).T())
		t.atMost(fmt.Sprintf("|φ(x) − S·v_q(x)|, q = %d", q), apart(z, &sv)/(1+largest(&sv)), 1e-12)
	})
	e.atMost(fmt.Sprintf("|V_qV_qᵀ − K|, q = %d", q), []float64{apart(outer(v), k0) / (1 + largest(k0))}, 1e-12)
}

// Second moments of sketches in closed form. The paper bounds them; where a bound is too loose to
// be contradicted, what is measured is compared with these, on both sides.

// covariance returns Cov[φ(x_i)ᵀφ(x_j), φ(x_k)ᵀφ(x_l)].
type covariance func(i, j, k, l int) float64

// expected returns E[Σ_{ijkl} P_ik Q_jl E_ij E_kl] for E = ZZᵀ−K, which is E‖BEC‖_F² for
// P = BᵀB and Q = CCᵀ.
func expected(p, q mat.Symmetric, cov covariance) (sum float64) {
	n := p.SymmetricDim()
	for i := range n {
		for k := range n {
			for j := range n {
				for l := range n {
					if w := p.At(i, k) * q.At(j, l); w != 0 {
						sum += w * cov(i, j, k, l)
					}
				}
			}
		}
	}
	return sum
}

// tensorSketchCovariance returns that of TensorSketch with s features of (xᵀz)^q, and of CountSketch for q = 1. With
//
//	D = Σ_c x_c z_c x'_c z'_c,  a = (xᵀz)(x'ᵀz'),  b = (xᵀx')(zᵀz') − D,  c = (xᵀz')(zᵀx') − D,
//
// each of the q factors of a tuple of indices pairs them in one of three ways, of weights a, b
// and c; hashes must agree where there is a b or a c, independently for the two kinds up to s's
// parity:
//
//	E = a^q + [(a+b)^q + (a+c)^q − 2a^q]/s + gcd(2, s)·[(a+b+c)^q − (a+b)^q − (a+c)^q + a^q]/s².
//
// It needs 4-wise independent signs and 2-wise independent hashes, and has the 2+3^q of Lemma 4 as
// a bound: the first bracket is at most 2^(q+1)−2, the second at most 3^q−2^(q+1)+1.
func tensorSketchCovariance(x *points.Dense, q, s int) covariance {
	g := outer(mat.NewDense(x.N, x.D, x.Data))
	parity := 1.0
	if s%2 == 0 {
		parity = 2
	}
	pow := func(v float64) float64 { return math.Pow(v, float64(q)) }
	return func(i, j, k, l int) float64 {
		d := 0.0
		xi, xj, xk, xl := x.Row(i), x.Row(j), x.Row(k), x.Row(l)
		for t := range xi {
			d += xi[t] * xj[t] * xk[t] * xl[t]
		}
		a, b, c := g.At(i, j)*g.At(k, l), g.At(i, k)*g.At(j, l)-d, g.At(i, l)*g.At(j, k)-d
		one := pow(a+b) + pow(a+c) - 2*pow(a)
		two := pow(a+b+c) - pow(a+b) - pow(a+c) + pow(a)
		return one/float64(s) + parity*two/float64(s*s)
	}
}

// lifted returns the points (√γ·x, √c), on which (γxᵀz+c)^q is homogeneous.
func lifted(k kernel.Polynomial, x *points.Dense) *points.Dense {
	out := points.NewDense(x.N, x.D+1, nil)
	for i := range x.N {
		for j, v := range x.Row(i) {
			out.Row(i)[j] = math.Sqrt(k.Gamma) * v
		}
		out.Row(i)[x.D] = math.Sqrt(k.Coef0)
	}
	return out
}

// fourierCovariance returns that of Fourier features of a Gaussian: a product of four cosines of
// one phase has the mean of the three cosines in which it cancels,
//
//	E = ½[k₀(x−z+x'−z') + k₀(x−z−x'+z') + k₀(x+z−x'−z')],  Cov = (E − k(x,z)k(x',z'))/s.
func fourierCovariance(k kernel.Gaussian, x *points.Dense, s int) covariance {
	zero := make([]float64, x.D)
	return func(i, j, m, l int) float64 {
		xi, xj, xm, xl := x.Row(i), x.Row(j), x.Row(m), x.Row(l)
		cosine := func(b, c, d float64) float64 { // k₀(x + b·z + c·x' + d·z')
			return k.Eval(values(x.D, func(t int) float64 { return xi[t] + b*xj[t] + c*xm[t] + d*xl[t] }), zero)
		}
		e := (cosine(-1, 1, -1) + cosine(-1, -1, 1) + cosine(1, -1, -1)) / 2
		return (e - k.Eval(xi, xj)*k.Eval(xm, xl)) / float64(s)
	}
}

// srhtCovariance returns that of an SRHT, φ(x) = Sx, of s of the M > 1 rows of H without replacement, M at least the
// dimension: that of as many buckets of a CountSketch, (b+c)/s, times (M−s)/(M−1). For one row with itself the product
// has the mean a+b+c, and for two rows, whose entrywise product is a third that is not constant, a − (b+c)/(M−1) by
// Parseval.
func srhtCovariance(x *points.Dense, order, s int) covariance {
	count, left := tensorSketchCovariance(x, 1, s), float64(order-s)/float64(order-1)
	return func(i, j, k, l int) float64 { return left * count(i, j, k, l) }
}
