package theory

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// problem is a small system (K+λI)c = y with all that the theory speaks of.
type problem struct {
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
	return rowsOf(&x)
}

// problem takes K of n points of R^d by the kernel's own formula, and the λ for which s_λ(K) is
// statDim; ρ is cloud's.
func (e *experiment) problem(k kernel.Kernel, n, d int, rho, statDim float64) *problem {
	g := e.g.Sub("problem")
	x := cloud(g, n, d, rho)
	p := &problem{x: x, n: n, gram: evaluated(k, x)}
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
	return between(p.l, less(outer(z), p.gram))
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

// residual returns y−ax.
func residual(a mat.Symmetric, x mat.Vector, y *mat.VecDense) *mat.VecDense {
	r := new(mat.VecDense)
	r.MulVec(a, x)
	r.SubVec(y, r)
	return r
}

// Dense linear algebra of small matrices, from the definitions and in float64. It knows nothing of
// what it is compared with.

// symmetrized returns (b+bᵀ)/2.
func symmetrized(b mat.Matrix) *mat.SymDense {
	var s mat.Dense
	s.Add(b, b.T())
	s.Scale(0.5, &s)
	n, _ := b.Dims()
	return mat.NewSymDense(n, s.RawMatrix().Data)
}

// eigenvalues returns those of s, ascending.
func eigenvalues(s mat.Symmetric) []float64 {
	var e mat.EigenSym
	if !e.Factorize(s, false) {
		fail("the eigenvalues of a matrix of order %d did not converge", s.SymmetricDim())
	}
	return e.Values(nil)
}

// norm returns ‖s‖₂ = max |eigenvalue|.
func norm(s mat.Symmetric) float64 {
	v := eigenvalues(s)
	return math.Max(math.Abs(v[0]), math.Abs(v[len(v)-1]))
}

// frobenius returns ‖a‖_F².
func frobenius(a mat.Matrix) float64 {
	f := mat.Norm(a, 2)
	return f * f
}

// shifted returns s+λI.
func shifted(s mat.Symmetric, lambda float64) *mat.SymDense {
	var a mat.SymDense
	a.AddSym(s, scalar(s.SymmetricDim(), lambda))
	return &a
}

// identity returns I, and scalar λI.
func identity(n int) *mat.DiagDense { return scalar(n, 1) }

func scalar(n int, lambda float64) *mat.DiagDense {
	return mat.NewDiagDense(n, values(n, func(int) float64 { return lambda }))
}

// outer returns zzᵀ.
func outer(z mat.Matrix) *mat.SymDense {
	n, _ := z.Dims()
	s := mat.NewSymDense(n, nil)
	s.SymOuterK(1, z)
	return s
}

// cholesky returns the factorization of a.
func cholesky(a mat.Symmetric) *mat.Cholesky {
	c := new(mat.Cholesky)
	if !c.Factorize(a) {
		fail("a matrix of order %d is not positive definite", a.SymmetricDim())
	}
	return c
}

// factor returns L with LLᵀ = a, lower triangular.
func factor(a mat.Symmetric) *mat.TriDense {
	var l mat.TriDense
	cholesky(a).LTo(&l)
	return &l
}

// inverted returns a⁻¹.
func inverted(a mat.Symmetric) *mat.SymDense {
	var inv mat.SymDense
	well(cholesky(a).InverseTo(&inv))
	return &inv
}

// solution returns a⁻¹y.
func solution(a mat.Symmetric, y mat.Vector) *mat.VecDense {
	var x mat.VecDense
	well(cholesky(a).SolveVecTo(&x, y))
	return &x
}

// well panics if err is not nil, nor a warning that the matrix is badly conditioned.
func well(err error) {
	if _, badly := errors.AsType[mat.Condition](err); err != nil && !badly {
		panic(failure{err})
	}
}

// solved returns L⁻¹b.
func solved(l *mat.TriDense, b mat.Matrix) *mat.Dense {
	var x mat.Dense
	well(l.SolveTo(&x, false, b))
	return &x
}

// between returns L⁻¹bL⁻ᵀ, symmetric for symmetric b.
func between(l *mat.TriDense, b mat.Matrix) *mat.SymDense {
	return symmetrized(solved(l, solved(l, b).T()))
}

// whole returns z in float64.
func whole(z *points.Dense32) *mat.Dense {
	a := mat.NewDense(z.N, z.D, nil)
	points.Panel64To(z, a.RawMatrix().Data, z.D)
	return a
}

// rounded returns z in float32, and rounds z itself to it.
func rounded(z *mat.Dense) *points.Dense32 {
	n, s := z.Dims()
	out := points.NewDense32(n, s, nil)
	z.Apply(func(i, j int, v float64) float64 {
		out.Row(i)[j] = float32(v)
		return float64(out.Row(i)[j])
	}, z)
	return out
}

// normals returns an r×c matrix of independent normal numbers, and vector n of them.
func normals(g rng.Stream, r, c int) *mat.Dense {
	a := mat.NewDense(r, c, nil)
	g.Normals(a.RawMatrix().Data, 0)
	return a
}

func vector(g rng.Stream, n int) *mat.VecDense {
	return mat.NewVecDense(n, normals(g, n, 1).RawMatrix().Data)
}

// orthogonal returns an n×n orthogonal matrix, uniform but for signs.
func orthogonal(g rng.Stream, n int) *mat.Dense {
	var qr mat.QR
	qr.Factorize(normals(g, n, n))
	var q mat.Dense
	qr.QTo(&q)
	return &q
}

// designed returns V·diag(values)·Vᵀ for a random orthogonal V.
func designed(g rng.Stream, values []float64) *mat.SymDense {
	return outer(root(g, values))
}

// root returns V·diag(√values).
func root(g rng.Stream, values []float64) *mat.Dense {
	v := orthogonal(g, len(values))
	v.Apply(func(_, j int, x float64) float64 { return x * math.Sqrt(values[j]) }, v)
	return v
}

// largest returns max |a_ij|, NaN if there is one.
func largest(a mat.Matrix) float64 {
	return floats.Norm(mat.DenseCopyOf(a).RawMatrix().Data, math.Inf(1))
}

// apart returns max |a_ij − b_ij|.
func apart(a, b mat.Matrix) float64 {
	var d mat.Dense
	d.Sub(a, b)
	return largest(&d)
}

// uniform returns a number between lo and hi, and spread one whose logarithm is uniform there.
func uniform(g rng.Stream, lo, hi float64) float64 { return lo + (hi-lo)*g.Float64(0) }

func spread(g rng.Stream, lo, hi float64) float64 {
	return math.Exp(uniform(g, math.Log(lo), math.Log(hi)))
}

// inverse returns M⁻¹ as p applies it.
func inverse(ctx context.Context, p Preconditioner) *mat.Dense {
	inv := mat.NewDense(p.Dim(), p.Dim(), nil)
	return must(inv, p.SolveTo(ctx, inv, mat.DenseCopyOf(identity(p.Dim()))))
}

// less returns a−b.
func less(a, b mat.Symmetric) *mat.SymDense {
	var d mat.SymDense
	d.ScaleSym(-1, b)
	d.AddSym(a, &d)
	return &d
}

// rowsOf returns the points that are the rows of x.
func rowsOf(x *mat.Dense) *points.Dense {
	n, d := x.Dims()
	return points.NewDense(n, d, x.RawMatrix().Data)
}
