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

// checkFeatures compares feature maps and sketches with the moments that define them.
func checkFeatures(e *experiment) {
	gauss, poly := kernel.Gaussian{Sigma: 1.2}, kernel.Polynomial{Gamma: 0.7, Coef0: 0.5, Degree: 2}
	ones := points.NewDense(1, 4, []float64{1, 1, 1, 1})
	x := randomPoints(e.random.Sub("cloud"), 8, 4, 0.8)
	newChain := func(s ...sketch.Dist) feature.Dist {
		c := feature.Chain{Features: e.parts.TensorSketch(poly), Width: 64}
		for i, d := range s {
			c.Sketches = append(c.Sketches, sketch.Level{Dist: d})
			if i < len(s)-1 {
				c.Sketches[i].Width = 32
			}
		}
		return c
	}
	for _, f := range []unbiasedFeatures{
		{"Fourier", gauss, e.parts.Fourier(gauss), x, 16, fourierCovariance(gauss, x, 16)},
		{"Fourier of a Matérn", kernel.Matern52{Sigma: 1.2}, e.parts.Fourier(kernel.Matern52{Sigma: 1.2}), x, 16, nil},
		{"TensorSketch", poly, e.parts.TensorSketch(poly), x, 15, tensorSketchCovariance(lift(poly, x), 2, 15)},
		{"TensorSketch of all ones", homogeneous(2), e.parts.TensorSketch(homogeneous(2)), ones, 16,
			tensorSketchCovariance(ones, 2, 16)},
		{"TensorSketch, q = 3", homogeneous(3), e.parts.TensorSketch(homogeneous(3)), ones, 16,
			tensorSketchCovariance(ones, 3, 16)},
		{"chain with SRHT and Gaussian", poly, newChain(e.parts.SRHT, e.parts.Gaussian), x, 16, nil},
		{"chain with CountSketch", poly, newChain(e.parts.CountSketch), x, 16, nil},
	} {
		e.checkUnbiased(f)
	}
	for _, q := range []int{1, 2, 3} {
		e.checkSketchMatrix(q)
	}
}

// homogeneous returns the kernel (xᵀz)^q.
func homogeneous(q int) kernel.Polynomial { return kernel.Polynomial{Gamma: 1, Degree: q} }

// unbiasedFeatures are random features Z at points, for which E[ZZᵀ] = K.
type unbiasedFeatures struct {
	name       string
	kernel     kernel.Kernel
	features   feature.Dist
	x          *points.Dense
	s          int        // number of features
	covariance covariance // of the entries of ZZᵀ; nil if there is no closed form
}

// checkUnbiased compares means over draws of Z with their expectations: vᵀZZᵀv with vᵀKv, and ‖ZZᵀ−K‖_F² with its
// closed form if there is one.
func (e *experiment) checkUnbiased(f unbiasedFeatures) {
	gram := kernelMatrix(f.kernel, f.x)
	v := gaussianMatrix(e.random.Sub("direction"), f.x.N, 3)
	expectedSquare := 0.0
	if unweighted := identity(f.x.N); f.covariance != nil {
		expectedSquare = expectedWeightedSquare(unweighted, unweighted, f.covariance)
	}
	e.runTrials(f.name, func(_ int, g rng.Stream, t *trial) {
		z := featureMatrix(f.features, f.x, f.s, g)
		var u mat.Dense
		u.Mul(z.T(), v) // Zᵀv
		for j := range 3 {
			want := mat.Inner(v.ColView(j), gram, v.ColView(j))
			t.checkMean(fmt.Sprintf("mean of vᵀZZᵀv, %s, direction %d", f.name, j+1),
				mat.Dot(u.ColView(j), u.ColView(j)), want)
		}
		if f.covariance != nil {
			t.checkMean("mean of ‖ZZᵀ−K‖_F², "+f.name, frobeniusSquared(subtract(timesTranspose(z), gram)),
				expectedSquare)
		}
	})
}

// featureMatrix draws a feature map with s features and returns Z in float64.
func featureMatrix(d feature.Dist, x *points.Dense, s int, g rng.Stream) *mat.Dense {
	z := mat.NewDense(x.N, s, nil)
	must(d.Sample(x.D, s, g)).MapTo(z.RawMatrix().Data, s, x, new(feature.Workspace))
	return z
}

// hashFunctions gives access to the hash functions of a feature map. *feature.TensorSketchMap implements it.
type hashFunctions interface {
	Hash(t, i int) (h int, g float64)
}

// tensorSketch draws a TensorSketch and returns it with its hash functions.
func (e *experiment) tensorSketch(k kernel.Polynomial, d, s int, g rng.Stream) (feature.Map, hashFunctions) {
	m := must(e.parts.TensorSketch(k).Sample(d, s, g))
	h, ok := m.(hashFunctions)
	if !ok {
		fail("a TensorSketch without access to its hash functions")
	}
	return m, h
}

// sketchMatrix returns the s×d^q matrix S of a TensorSketch of R^d with s features, computed from its hash functions.
// Column (i₁, …, i_q) has the entry g₁(i₁)⋯g_q(i_q) in row h₁(i₁)+…+h_q(i_q) mod s.
func sketchMatrix(m hashFunctions, q, d, s int) *mat.Dense {
	columns := power(d, q)
	out := mat.NewDense(s, columns, nil)
	for c := range columns {
		row, sign := 0, 1.0
		for t, remaining := 0, c; t < q; t, remaining = t+1, remaining/d {
			h, g := m.Hash(t, remaining%d)
			row, sign = row+h, sign*g
		}
		out.Set(row%s, c, sign)
	}
	return out
}

// power returns d^q.
func power(d, q int) int {
	p := 1
	for range q {
		p *= d
	}
	return p
}

// tensors returns the n×d^q matrix V_q. Its row i is the tensor power x⊗…⊗x (q factors) of point i.
func tensors(x *points.Dense, q int) *mat.Dense {
	columns := power(x.D, q)
	v := mat.NewDense(x.N, columns, nil)
	for i := range x.N {
		for c := range columns {
			p := 1.0
			for t, remaining := 0, c; t < q; t, remaining = t+1, remaining/x.D {
				p *= x.Row(i)[remaining%x.D]
			}
			v.Set(i, c, p)
		}
	}
	return v
}

// checkSketchMatrix compares the features of TensorSketch, which are computed by FFT, with S·v_q(x), and V_qV_qᵀ with
// K.
func (e *experiment) checkSketchMatrix(q int) {
	k := homogeneous(q)
	x := randomPoints(e.random.Sub("matrix", uint64(q)), 4, 4, 0.8)
	v := tensors(x, q)
	gram := kernelMatrix(k, x)
	e.runTrials(fmt.Sprintf("matrix %d", q), func(i int, g rng.Stream, t *trial) {
		s := 1 + g.Sub("s").IntN(0, 40)
		m, h := e.tensorSketch(k, x.D, s, g)
		z := mat.NewDense(x.N, s, nil)
		m.MapTo(z.RawMatrix().Data, s, x, new(feature.Workspace))
		var sv mat.Dense
		sv.Mul(v, sketchMatrix(h, q, x.D, s).T())
		t.checkAtMost(fmt.Sprintf("|φ(x) − S·v_q(x)|, q = %d", q), maxDifference(z, &sv)/(1+maxAbs(&sv)), 1e-12)
	})
	difference := maxDifference(timesTranspose(v), gram) / (1 + maxAbs(gram))
	e.checkAtMost(fmt.Sprintf("|V_qV_qᵀ − K|, q = %d", q), []float64{difference}, 1e-12)
}

// The following functions return second moments of sketches in closed form. The paper has upper bounds of them. If such
// a bound is too loose to fail, measurements are compared with the closed form, in a two-sided test.

// covariance returns Cov[φ(x_i)ᵀφ(x_j), φ(x_k)ᵀφ(x_l)].
type covariance func(i, j, k, l int) float64

// expectedWeightedSquare returns the expectation of Σ_{ijkl} P_ik Q_jl E_ij E_kl for the error E = ZZᵀ−K of features
// whose products have the covariance cov. This is the expectation of ‖BEC‖_F² for P = BᵀB and Q = CCᵀ.
func expectedWeightedSquare(p, q mat.Symmetric, cov covariance) (sum float64) {
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

// tensorSketchCovariance returns the covariance for TensorSketch with s features of (xᵀz)^q, which is CountSketch if
// q = 1. With
//
//	D = Σ_c x_c z_c x'_c z'_c,  a = (xᵀz)(x'ᵀz'),  b = (xᵀx')(zᵀz') − D,  c = (xᵀz')(zᵀx') − D,
//
// the expectation of the product φ(x)ᵀφ(z)·φ(x')ᵀφ(z') is a sum over the ways to pair the four indices of each of the q
// factors. The three ways to pair them have the weights a, b and c. Pairings with b or c contribute only if the hashes
// agree, with probability 1/s for each of the two kinds. The two events are independent if s is odd. Without a^q, the
// product of the expectations, the covariance is
//
//	Cov = [(a+b)^q + (a+c)^q − 2a^q]/s + gcd(2, s)·[(a+b+c)^q − (a+b)^q − (a+c)^q + a^q]/s².
//
// The formula requires 4-wise independent signs and 2-wise independent hashes. It implies the factor 2+3^q of Lemma 4:
// the first bracket is at most 2^(q+1)−2, the second at most 3^q−2^(q+1)+1.
func tensorSketchCovariance(x *points.Dense, q, s int) covariance {
	products := timesTranspose(mat.NewDense(x.N, x.D, x.Data))
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
		a, b, c := products.At(i, j)*products.At(k, l), products.At(i, k)*products.At(j, l)-d, products.At(i,
			l)*products.At(j, k)-d
		singleSum := pow(a+b) + pow(a+c) - 2*pow(a)
		pairSum := pow(a+b+c) - pow(a+b) - pow(a+c) + pow(a)
		return singleSum/float64(s) + parity*pairSum/float64(s*s)
	}
}

// lift returns the points (√γ·x, √c), for which the kernel (γxᵀz+c)^q of the points x is the homogeneous kernel.
func lift(k kernel.Polynomial, x *points.Dense) *points.Dense {
	out := points.NewDense(x.N, x.D+1, nil)
	for i := range x.N {
		for j, v := range x.Row(i) {
			out.Row(i)[j] = math.Sqrt(k.Gamma) * v
		}
		out.Row(i)[x.D] = math.Sqrt(k.Coef0)
	}
	return out
}

// fourierCovariance returns the covariance for s Fourier features of a Gaussian kernel. The expectation of a product of
// four cosines with the same random phase is an eighth of the sum of the three cosines in which the phase cancels. Each
// cosine has the factor √2, so that E is four times that expectation,
//
//	E = ½[k₀(x−z+x'−z') + k₀(x−z−x'+z') + k₀(x+z−x'−z')],  Cov = (E − k(x,z)k(x',z'))/s.
func fourierCovariance(k kernel.Gaussian, x *points.Dense, s int) covariance {
	zero := make([]float64, x.D)
	return func(i, j, m, l int) float64 {
		xi, xj, xm, xl := x.Row(i), x.Row(j), x.Row(m), x.Row(l)
		cosine := func(b, c, d float64) float64 { // k₀(x + b·z + c·x' + d·z')
			return k.Eval(tabulate(x.D, func(t int) float64 { return xi[t] + b*xj[t] + c*xm[t] + d*xl[t] }), zero)
		}
		expectation := (cosine(-1, 1, -1) + cosine(-1, -1, 1) + cosine(1, -1, -1)) / 2
		return (expectation - k.Eval(xi, xj)*k.Eval(xm, xl)) / float64(s)
	}
}

// srhtCovariance returns the covariance for an SRHT, φ(x) = Sx, with s of the M > 1 rows of H without replacement. M is
// order and at least the dimension. The covariance is (b+c)/s, that of a CountSketch with s buckets, times (M−s)/(M−1).
// The expectation of the product of a row with itself is a+b+c. For two different rows, whose entrywise product is a
// third row that is not constant, it is a − (b+c)/(M−1) by Parseval's identity.
func srhtCovariance(x *points.Dense, order, s int) covariance {
	countSketch, factor := tensorSketchCovariance(x, 1, s), float64(order-s)/float64(order-1)
	return func(i, j, k, l int) float64 { return factor * countSketch(i, j, k, l) }
}
