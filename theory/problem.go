package theory

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// problem is a small system (K+λI)c = y with all that the theory speaks of.
type problem struct {
	k       kernel.Kernel
	x       *points.Dense
	n       int
	gram    *mat.SymDense // K, by Eval
	mu      []float64     // its eigenvalues
	lambda  float64
	statDim float64       // s_λ(K) = Σ μ/(μ+λ)
	a       *mat.SymDense // A = K+λI
	l       *mat.TriDense // A = LLᵀ
	inv     *mat.SymDense // A⁻¹
	y, c    *mat.VecDense // a right-hand side, and the solution
}

// cloud returns n points of R^d whose coordinates have standard deviations 1, ρ, ρ², …, turned so
// that no coordinate is special: the spectrum of a polynomial kernel decays as the products of
// these, and all hashes of a sketch meet.
func cloud(g rng.Stream, n, d int, rho float64) *points.Dense {
	y := normals(g.Sub("points"), n, d)
	y.Apply(func(_, j int, v float64) float64 { return v * math.Pow(rho, float64(j)) }, y)
	var x mat.Dense
	x.Mul(y, orthogonal(g.Sub("turn"), d))
	return points.NewDense(n, d, x.RawMatrix().Data)
}

// newProblem takes K of the points by the kernel's own formula, and the λ for which s_λ(K) is
// statDim.
func newProblem(g rng.Stream, k kernel.Kernel, x *points.Dense, statDim float64) *problem {
	p := &problem{k: k, x: x, n: x.N, gram: evaluated(k, x)}
	p.mu = eigenvalues(p.gram)
	p.lambda = ridgeFor(p.mu, statDim)
	p.statDim = degrees(p.mu, p.lambda)
	p.a = shifted(p.gram, p.lambda)
	p.l, p.inv = factor(p.a), inverted(p.a)
	p.y = vector(g.Sub("right-hand side"), p.n)
	p.c = solution(p.a, p.y)
	return p
}

// evaluated returns K by Eval.
func evaluated(k kernel.Kernel, x *points.Dense) *mat.SymDense {
	s := mat.NewSymDense(x.N, nil)
	for i := range x.N {
		for j := range i + 1 {
			s.SetSym(i, j, k.Eval(x.Row(i), x.Row(j)))
		}
	}
	return s
}

// degrees returns s_λ = Σ μ/(μ+λ).
func degrees(mu []float64, lambda float64) (s float64) {
	for _, v := range mu {
		v = math.Max(v, 0)
		s += v / (v + lambda)
	}
	return s
}

// ridgeFor returns the λ at which s_λ is statDim, by bisection: s_λ falls with λ.
func ridgeFor(mu []float64, statDim float64) float64 {
	top := mu[len(mu)-1]
	lo, hi := math.Log(top*1e-12), math.Log(top*1e6)
	for range 80 {
		mid := (lo + hi) / 2
		if degrees(mu, math.Exp(mid)) > statDim {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp((lo + hi) / 2)
}

// features returns Z of s features, as the preconditioner takes it.
func (p *problem) features(e *experiment, d feature.Dist, s int, g rng.Stream) *points.Dense32 {
	return must(feature.Matrix(e.ctx, must(d.Sample(p.x.D, s, g)), p.x, nil))
}

// whitened returns L⁻¹(ZZᵀ−K)L⁻ᵀ, which is QSᵀSQᵀ−QQᵀ in the proofs: I plus it has the
// eigenvalues of A⁻¹(ZZᵀ+λI).
func (p *problem) whitened(z mat.Matrix) *mat.SymDense {
	d := outer(z)
	subtract(d, p.gram)
	return between(p.l, d)
}

// pencil returns the spectrum of M⁻¹A for A = LLᵀ, ascending, with M⁻¹ as it is applied: that of
// LᵀM⁻¹L.
func (e *experiment) pencil(l *mat.TriDense, m Preconditioner) []float64 {
	var b mat.Dense
	b.Product(l.T(), inverse(e.ctx, m), l)
	return eigenvalues(symmetrized(&b))
}

// cond returns λ_max/λ_min of a spectrum, +Inf if it is not positive.
func cond(v []float64) float64 {
	if !(v[0] > 0) {
		return math.Inf(1)
	}
	return v[len(v)-1] / v[0]
}

// operator is a dense matrix for package pcg.
type operator struct{ mat.Symmetric }

func (o operator) Dim() int { return o.SymmetricDim() }

func (o operator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	dst.Mul(o.Symmetric, src)
	return ctx.Err()
}

// missed returns ‖c̃−c‖_A/‖c‖_A after the given number of iterations of PCG from zero.
func (p *problem) missed(e *experiment, m pcg.Preconditioner, iterations int) float64 {
	return p.distance(e.solve(p.a, m, p.y, &pcg.Options{Tol: 1e-15, MaxIter: iterations}))
}

// distance returns ‖x−c‖_A/‖c‖_A.
func (p *problem) distance(x mat.Vector) float64 {
	var d mat.VecDense
	d.SubVec(x, p.c)
	return math.Sqrt(mat.Inner(&d, p.a, &d) / mat.Inner(p.c, p.a, p.c))
}

// column returns v as an n×1 matrix.
func column(v *mat.VecDense) *mat.Dense {
	return mat.NewDense(v.Len(), 1, append([]float64(nil), v.RawVector().Data...))
}
