package theory

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

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
					sum += p.At(i, k) * q.At(j, l) * cov(i, j, k, l)
				}
			}
		}
	}
	return sum
}

// tensorSketchCovariance returns that of TensorSketch with s features of (xᵀz)^q. With
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
		a, b, c := make([]float64, x.D), make([]float64, x.D), make([]float64, x.D)
		xi, xj, xm, xl := x.Row(i), x.Row(j), x.Row(m), x.Row(l)
		for t := range a {
			a[t] = xi[t] - xj[t] + xm[t] - xl[t]
			b[t] = xi[t] - xj[t] - xm[t] + xl[t]
			c[t] = xi[t] + xj[t] - xm[t] - xl[t]
		}
		e := (k.Eval(a, zero) + k.Eval(b, zero) + k.Eval(c, zero)) / 2
		return (e - k.Eval(xi, xj)*k.Eval(xm, xl)) / float64(s)
	}
}

// srhtExpected returns E‖Y(SᵀS−I)Yᵀ‖_F² for an SRHT of s of the M rows of H, without replacement,
// and Y, n×m with m ≤ M. For rows x and z of Y, D = Σ x_c²z_c², a = (xᵀz)² and b = ‖x‖²‖z‖²,
//
//	E(xᵀSᵀSz)² = [2a+b−2D + (s−1)(a−2D + (2MD−a−b)/(M−1))]/s,
//
// since the entrywise product of two rows of H is a third, and Parseval sums over these.
func srhtExpected(y *mat.Dense, order, s int) (sum float64) {
	n, m := y.Dims()
	big, sf := float64(order), float64(s)
	g := outer(y)
	for i := range n {
		for j := range n {
			d := 0.0
			x, z := y.RawRowView(i), y.RawRowView(j)
			for t := range m {
				d += x[t] * x[t] * z[t] * z[t]
			}
			a, b := g.At(i, j)*g.At(i, j), g.At(i, i)*g.At(j, j)
			across := 0.0 // two rows of H
			if s > 1 {
				across = a - 2*d + (2*big*d-a-b)/(big-1)
			}
			sum += (2*a+b-2*d+(sf-1)*across)/sf - a
		}
	}
	return sum
}

// countExpected returns E‖Y(SᵀS−I)Yᵀ‖_F² for a CountSketch to s numbers: Σ (a+b−2D)/s.
func countExpected(y *mat.Dense, s int) (sum float64) {
	x := points.NewDense(y.RawMatrix().Rows, y.RawMatrix().Cols, y.RawMatrix().Data)
	cov := tensorSketchCovariance(x, 1, s)
	for i := range x.N {
		for j := range x.N {
			sum += cov(i, j, i, j)
		}
	}
	return sum
}
