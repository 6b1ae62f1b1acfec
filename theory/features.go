package theory

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/sketch"
)

var features = Claim{
	Name: "features", Place: "section 2.2", Kind: Probability,
	Statement: "E[φ(x)ᵀφ(z)] = k(x, z): Fourier features √(2/s)·cos(Wx+b), w ~ N(0, I/σ²), b ~ U(0, 2π); TensorSketch, a CountSketch of x⊗…⊗x with\n" +
		"H = Σ h_j(i_j) mod s and G = Π g_j(i_j); E[SᵀS] = I for the sketches that follow, and for chains of them.",
	Measured: "the means of vᵀZZᵀv over draws for fixed directions v, and E‖ZZᵀ−K‖_F² of single maps against its closed form, two-sided; φ(x) = S·v_q(x) entry by entry.",
	Fails:    "a wrong scale moves every mean by that factor squared, and signs that depend on one index twice move them too: 16 becomes 19 for all-ones points of R⁴, q = 2, s = 16.",
	run:      checkFeatures,
}

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
		{"TensorSketch of all ones", plain(2), e.parts.TensorSketch(plain(2)), ones, 16, tensorSketchCovariance(ones, 2, 16)},
		{"TensorSketch, q = 3", plain(3), e.parts.TensorSketch(plain(3)), ones, 16, tensorSketchCovariance(ones, 3, 16)},
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
	want := make([]float64, 3)
	for j := range want {
		want[j] = mat.Inner(v.ColView(j), gram, v.ColView(j))
	}
	out := e.sample(name, e.trials, 4, func(_ int, g rng.Stream, out []float64) {
		z := mapped(d, x, s, g)
		var u mat.Dense
		u.Mul(z.T(), v) // Zᵀv
		for j := range want {
			out[j] = mat.Dot(u.ColView(j), u.ColView(j))
		}
		diff := outer(z)
		subtract(diff, gram)
		out[3] = frobenius(diff)
	})
	for j := range want {
		e.mean(fmt.Sprintf("mean of vᵀZZᵀv, %s, direction %d", name, j+1), out[j], want[j], 0)
	}
	if cov != nil {
		one := identity(x.N)
		e.mean("mean of ‖ZZᵀ−K‖_F², "+name, out[3], expected(one, one, cov), 0)
	}
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
	out := e.sample(fmt.Sprintf("matrix %d", q), e.trials, 1, func(i int, g rng.Stream, out []float64) {
		s := 1 + g.Sub("s").IntN(0, 40)
		m, h := e.tensorSketch(k, x.D, s, g)
		z := mat.NewDense(x.N, s, nil)
		m.MapTo(z.RawMatrix().Data, s, x, new(feature.Workspace))
		var sv mat.Dense
		sv.Mul(v, explicit(h, q, x.D, s).T())
		out[0] = apart(z, &sv) / (1 + largest(&sv))
	})
	e.atMost(fmt.Sprintf("|φ(x) − S·v_q(x)|, q = %d", q), out[0], 1e-12)
	e.atMost(fmt.Sprintf("|V_qV_qᵀ − K|, q = %d", q), []float64{apart(outer(v), k0) / (1 + largest(k0))}, 1e-12)
}
