package krrlab

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel"
)

// quad is the unevaluated sum hi + lo of two float64 numbers, right to about 2⁻¹⁰⁰: what answers are
// judged by where float64 does not suffice. Y. Hida, X. S. Li, D. H. Bailey, Algorithms for quad-double
// precision floating point arithmetic, ARITH-15, 2001.
type quad struct{ hi, lo float64 }

func twoSum(a, b float64) quad {
	s := a + b
	v := s - a
	return quad{s, (a - (s - v)) + (b - v)}
}

func twoProduct(a, b float64) quad {
	p := a * b
	return quad{p, math.FMA(a, b, -p)}
}

func (a quad) add(b quad) quad {
	s, t := twoSum(a.hi, b.hi), twoSum(a.lo, b.lo)
	s = twoSum(s.hi, s.lo+t.hi)
	return twoSum(s.hi, s.lo+t.lo)
}

func (a quad) mul(b quad) quad {
	p := twoProduct(a.hi, b.hi)
	return twoSum(p.hi, p.lo+a.hi*b.lo+a.lo*b.hi)
}

func (a quad) neg() quad { return quad{-a.hi, -a.lo} }

func (a quad) div(b quad) quad {
	q := a.hi / b.hi
	r := a.add(b.mul(quad{q, 0}).neg())
	q2 := r.hi / b.hi
	r = r.add(b.mul(quad{q2, 0}).neg())
	return twoSum(q, q2).add(quad{r.hi / b.hi, 0})
}

func (a quad) sqrt() quad {
	if a.hi <= 0 {
		return quad{}
	}
	s := math.Sqrt(a.hi)
	r := a.add(twoProduct(s, s).neg())
	return twoSum(s, r.hi/(2*s))
}

func (a quad) abs() quad {
	if a.hi < 0 {
		return a.neg()
	}
	return a
}

// exp is e^a for a ≤ 0: 2^k·(e^(r/512))^512 by Taylor's series.
func (a quad) exp() quad {
	ln2 := quad{math.Ln2, 2.319046813846299558e-17}
	if a.hi < -740 {
		return quad{}
	}
	k := math.Round(a.hi / math.Ln2)
	r := a.add(ln2.mul(quad{k, 0}).neg())
	r.hi, r.lo = r.hi/512, r.lo/512
	sum, term := quad{}, quad{1, 0}
	for i := 1; i <= 12; i++ {
		term = term.mul(r).div(quad{float64(i), 0})
		sum = sum.add(term)
	}
	for range 9 { // (1+s)² − 1 = s(2+s)
		sum = sum.mul(sum.add(quad{2, 0}))
	}
	sum = sum.add(quad{1, 0})
	return quad{math.Ldexp(sum.hi, int(k)), math.Ldexp(sum.lo, int(k))}
}

// weightedReference is √w√v·k(x, z) of rows whose last numbers are √w and √v.
type weightedReference struct{ kernel.Kernel }

func (k weightedReference) Eval(x, z []float64) float64 {
	d := len(x) - 1
	return x[d] * k.Kernel.Eval(x[:d], z[:d]) * z[d]
}

// quadKernel is k(x, z) by its formula.
func quadKernel(k kernel.Kernel, x, z []float64) quad {
	var sq, l1, dot quad
	for j := range x {
		e := twoSum(x[j], -z[j])
		sq, l1, dot = sq.add(e.mul(e)), l1.add(e.abs()), dot.add(twoProduct(x[j], z[j]))
	}
	matern := func(c, sigma float64) quad { return quad{c, 0}.mul(sq).sqrt().div(quad{sigma, 0}) }
	one := quad{1, 0}
	switch k := k.(type) {
	case kernel.Gaussian:
		return sq.div(twoProduct(2*k.Sigma, k.Sigma)).neg().exp()
	case kernel.Laplacian:
		return l1.div(quad{k.Sigma, 0}).neg().exp()
	case kernel.Matern32:
		u := matern(3, k.Sigma)
		return u.add(one).mul(u.neg().exp())
	case kernel.Matern52:
		u := matern(5, k.Sigma)
		return u.mul(u).div(quad{3, 0}).add(u).add(one).mul(u.neg().exp())
	case kernel.Polynomial:
		base, p := quad{k.Gamma, 0}.mul(dot).add(quad{k.Coef0, 0}), one
		for range k.Degree {
			p = p.mul(base)
		}
		return p
	case weightedReference:
		d := len(x) - 1
		return quadKernel(k.Kernel, x[:d], z[:d]).mul(twoProduct(x[d], z[d]))
	case kernel.Func: // is what it returns
		return quad{k.F(x, z), 0}
	}
	panic("no formula")
}

// trueResiduals returns ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂ in twice the digits of float64.
func trueResiduals(k kernel.Kernel, x [][]float64, lambda float64, c, y *mat.Dense) []float64 {
	n, t := y.Dims()
	r := make([]quad, n*t)
	for i := range n {
		for j := range t {
			r[i*t+j] = quad{y.At(i, j), 0}.add(twoProduct(lambda, c.At(i, j)).neg())
		}
	}
	for i := range n {
		for l := range i + 1 {
			v := quadKernel(k, x[i], x[l])
			for j := range t {
				r[i*t+j] = r[i*t+j].add(v.mul(quad{c.At(l, j), 0}).neg())
				if l < i {
					r[l*t+j] = r[l*t+j].add(v.mul(quad{c.At(i, j), 0}).neg())
				}
			}
		}
	}
	rel := make([]float64, t)
	for j := range rel {
		size := mat.Norm(y.ColView(j), 2)
		for i := range n {
			rel[j] = math.Hypot(rel[j], r[i*t+j].hi) // squares may be 0
		}
		if rel[j] > 0 {
			rel[j] /= size
		}
	}
	return rel
}
