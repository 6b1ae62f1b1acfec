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

// problem is a small system (K+λI)c = y with the quantities that occur in the theory.
type problem struct {
	x       *points.Dense
	n       int
	gram    *mat.SymDense // K, computed by Eval
	mu      []float64     // eigenvalues of K, ascending
	lambda  float64
	statDim float64       // s_λ(K) = Σ μ/(μ+λ)
	a       *mat.SymDense // A = K+λI
	l       *mat.TriDense // Cholesky factor L of A = LLᵀ
	inv     *mat.SymDense // the inverse A⁻¹
	y, c    *mat.VecDense // a right-hand side, and the solution
}

// randomPoints returns n normally distributed points of R^d. Their coordinates have the standard deviations 1, ρ, ρ²,
// …, and are then multiplied by a random orthogonal matrix, so that no coordinate is special and all hashes of a sketch
// have collisions. The spectrum of a polynomial kernel decays like the products of the squares of these numbers.
func randomPoints(g rng.Stream, n, d int, rho float64) *points.Dense {
	y := gaussianMatrix(g.Sub("points"), n, d)
	y.Apply(func(_, j int, v float64) float64 { return v * math.Pow(rho, float64(j)) }, y)
	var x mat.Dense
	x.Mul(y, orthogonal(g.Sub("turn"), d))
	return rowsOf(&x)
}

// problem returns a problem with n points of randomPoints(n, d, rho), the kernel matrix by the kernel's own formula,
// and the λ for which s_λ(K) = statDim.
func (e *experiment) problem(k kernel.Kernel, n, d int, rho, statDim float64) *problem {
	g := e.random.Sub("problem")
	x := randomPoints(g, n, d, rho)
	p := &problem{x: x, n: n, gram: kernelMatrix(k, x)}
	p.mu = eigenvalues(p.gram)
	p.lambda = ridgeFor(p.mu, statDim)
	p.statDim = statDimOf(p.mu, p.lambda)
	p.a = addRidge(p.gram, p.lambda)
	p.l, p.inv = choleskyFactor(p.a), inverse(p.a)
	p.y = gaussianVector(g.Sub("right-hand side"), p.n)
	p.c = solve(p.a, p.y)
	return p
}

// kernelMatrix returns K, computed by k.Eval.
func kernelMatrix(k kernel.Kernel, x *points.Dense) *mat.SymDense {
	s := mat.NewSymDense(x.N, nil)
	for i := range x.N {
		for j := range i + 1 {
			s.SetSym(i, j, k.Eval(x.Row(i), x.Row(j)))
		}
	}
	return s
}

// statDimOf returns s_λ = Σ μ/(μ+λ). It treats negative μ, which are rounding errors, as 0.
func statDimOf(mu []float64, lambda float64) (s float64) {
	for _, v := range mu {
		v = math.Max(v, 0)
		s += v / (v + lambda)
	}
	return s
}

// ridgeFor returns the λ for which s_λ = statDim, between 10⁻¹² and 10⁶ times the largest eigenvalue. It uses
// bisection, since s_λ decreases with λ.
func ridgeFor(mu []float64, statDim float64) float64 {
	maxEigenvalue := mu[len(mu)-1]
	lo, hi := math.Log(maxEigenvalue*1e-12), math.Log(maxEigenvalue*1e6)
	for range 80 {
		mid := (lo + hi) / 2
		if statDimOf(mu, math.Exp(mid)) > statDim {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp((lo + hi) / 2)
}

// features draws s features and returns Z in float32, the form that the preconditioner uses.
func (p *problem) features(e *experiment, d feature.Dist, s int, g rng.Stream) *points.Dense32 {
	return must(feature.Matrix(e.ctx, must(d.Sample(p.x.D, s, g)), p.x, nil))
}

// whitenedError returns W = L⁻¹(ZZᵀ−K)L⁻ᵀ, which is QSᵀSQᵀ−QQᵀ in the proofs. I+W has the eigenvalues of A⁻¹(ZZᵀ+λI).
func (p *problem) whitenedError(z mat.Matrix) *mat.SymDense {
	return congruence(p.l, subtract(timesTranspose(z), p.gram))
}

// preconditionedEigenvalues returns the eigenvalues of M⁻¹A for A = LLᵀ, ascending. They are the eigenvalues of LᵀM⁻¹L,
// with M⁻¹ as the preconditioner applies it.
func (e *experiment) preconditionedEigenvalues(l *mat.TriDense, m Preconditioner) []float64 {
	var b mat.Dense
	b.Product(l.T(), denseInverse(e.ctx, m), l)
	return eigenvalues(symmetricPart(&b))
}

// conditionNumber returns λ_max/λ_min of ascending eigenvalues, or +Inf if λ_min is not positive.
func conditionNumber(v []float64) float64 {
	if !(v[0] > 0) {
		return math.Inf(1)
	}
	return v[len(v)-1] / v[0]
}

// operator adapts a dense symmetric matrix to pcg.Operator.
type operator struct{ mat.Symmetric }

// Dim implements pcg.Operator.
func (o operator) Dim() int { return o.SymmetricDim() }

// MulTo implements pcg.Operator.
func (o operator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	dst.Mul(o.Symmetric, src)
	return ctx.Err()
}

// pcgError returns ‖c̃−c‖_A/‖c‖_A after the given number of PCG iterations that start from zero.
func (p *problem) pcgError(e *experiment, m pcg.Preconditioner, iterations int) float64 {
	return p.distance(e.solve(p.a, m, p.y, &pcg.Options{Tol: 1e-15, MaxIter: iterations}))
}

// distance returns ‖x−c‖_A/‖c‖_A.
func (p *problem) distance(x mat.Vector) float64 {
	var d mat.VecDense
	d.SubVec(x, p.c)
	return math.Sqrt(mat.Inner(&d, p.a, &d) / mat.Inner(p.c, p.a, p.c))
}

// residual returns y − a·x.
func residual(a mat.Symmetric, x mat.Vector, y *mat.VecDense) *mat.VecDense {
	r := new(mat.VecDense)
	r.MulVec(a, x)
	r.SubVec(y, r)
	return r
}

// The following functions are dense linear algebra for small matrices, written from the definitions in float64. They
// are independent of the code that is checked. If a factorization fails, they end the check by a panic with a failure.

// symmetricPart returns (b+bᵀ)/2.
func symmetricPart(b mat.Matrix) *mat.SymDense {
	var s mat.Dense
	s.Add(b, b.T())
	s.Scale(0.5, &s)
	n, _ := b.Dims()
	return mat.NewSymDense(n, s.RawMatrix().Data)
}

// eigenvalues returns the eigenvalues of s, ascending.
func eigenvalues(s mat.Symmetric) []float64 {
	var e mat.EigenSym
	if !e.Factorize(s, false) {
		fail("the eigenvalues of a matrix of order %d did not converge", s.SymmetricDim())
	}
	return e.Values(nil)
}

// spectralNorm returns ‖s‖₂ = max |eigenvalue|.
func spectralNorm(s mat.Symmetric) float64 {
	v := eigenvalues(s)
	return math.Max(math.Abs(v[0]), math.Abs(v[len(v)-1]))
}

// frobeniusSquared returns ‖a‖_F².
func frobeniusSquared(a mat.Matrix) float64 {
	f := mat.Norm(a, 2)
	return f * f
}

// addRidge returns s+λI.
func addRidge(s mat.Symmetric, lambda float64) *mat.SymDense {
	var a mat.SymDense
	a.AddSym(s, scaledIdentity(s.SymmetricDim(), lambda))
	return &a
}

// identity returns the n×n identity matrix.
func identity(n int) *mat.DiagDense { return scaledIdentity(n, 1) }

// scaledIdentity returns the n×n matrix λI.
func scaledIdentity(n int, lambda float64) *mat.DiagDense {
	return mat.NewDiagDense(n, tabulate(n, func(int) float64 { return lambda }))
}

// timesTranspose returns zzᵀ.
func timesTranspose(z mat.Matrix) *mat.SymDense {
	n, _ := z.Dims()
	s := mat.NewSymDense(n, nil)
	s.SymOuterK(1, z)
	return s
}

// cholesky returns the Cholesky factorization of a.
func cholesky(a mat.Symmetric) *mat.Cholesky {
	c := new(mat.Cholesky)
	if !c.Factorize(a) {
		fail("a matrix of order %d is not positive definite", a.SymmetricDim())
	}
	return c
}

// choleskyFactor returns the lower triangular L with LLᵀ = a.
func choleskyFactor(a mat.Symmetric) *mat.TriDense {
	var l mat.TriDense
	cholesky(a).LTo(&l)
	return &l
}

// inverse returns a⁻¹.
func inverse(a mat.Symmetric) *mat.SymDense {
	var inv mat.SymDense
	checkSolve(cholesky(a).InverseTo(&inv))
	return &inv
}

// solve returns a⁻¹y.
func solve(a mat.Symmetric, y mat.Vector) *mat.VecDense {
	var x mat.VecDense
	checkSolve(cholesky(a).SolveVecTo(&x, y))
	return &x
}

// checkSolve panics with a failure unless err is nil or a mat.Condition, the warning that a matrix is ill-conditioned.
func checkSolve(err error) {
	if _, illConditioned := errors.AsType[mat.Condition](err); err != nil && !illConditioned {
		panic(failure{err})
	}
}

// solveLower returns L⁻¹b.
func solveLower(l *mat.TriDense, b mat.Matrix) *mat.Dense {
	var x mat.Dense
	checkSolve(l.SolveTo(&x, false, b))
	return &x
}

// congruence returns the symmetric matrix L⁻¹bL⁻ᵀ for a symmetric b.
func congruence(l *mat.TriDense, b mat.Matrix) *mat.SymDense {
	return symmetricPart(solveLower(l, solveLower(l, b).T()))
}

// toFloat64 returns z converted to float64.
func toFloat64(z *points.Dense32) *mat.Dense {
	a := mat.NewDense(z.N, z.D, nil)
	points.RowsTo(z, a.RawMatrix().Data, z.D)
	return a
}

// roundToFloat32 returns z in float32. It also rounds the entries of z itself to float32.
func roundToFloat32(z *mat.Dense) *points.Dense32 {
	n, s := z.Dims()
	out := points.NewDense32(n, s, nil)
	z.Apply(func(i, j int, v float64) float64 {
		out.Row(i)[j] = float32(v)
		return float64(out.Row(i)[j])
	}, z)
	return out
}

// gaussianMatrix returns an r×c matrix of independent standard normal numbers.
func gaussianMatrix(g rng.Stream, r, c int) *mat.Dense {
	a := mat.NewDense(r, c, nil)
	g.Normals(a.RawMatrix().Data, 0)
	return a
}

// gaussianVector returns a vector of n independent standard normal numbers.
func gaussianVector(g rng.Stream, n int) *mat.VecDense {
	return mat.NewVecDense(n, gaussianMatrix(g, n, 1).RawMatrix().Data)
}

// orthogonal returns a random n×n orthogonal matrix, uniformly distributed up to the signs of its columns.
func orthogonal(g rng.Stream, n int) *mat.Dense {
	var qr mat.QR
	qr.Factorize(gaussianMatrix(g, n, n))
	var q mat.Dense
	qr.QTo(&q)
	return &q
}

// withSpectrum returns V·diag(values)·Vᵀ for a random orthogonal V.
func withSpectrum(g rng.Stream, values []float64) *mat.SymDense {
	return timesTranspose(spectrumRoot(g, values))
}

// spectrumRoot returns V·diag(√values).
func spectrumRoot(g rng.Stream, values []float64) *mat.Dense {
	v := orthogonal(g, len(values))
	v.Apply(func(_, j int, x float64) float64 { return x * math.Sqrt(values[j]) }, v)
	return v
}

// maxAbs returns max |a_ij|, or NaN if an entry is NaN.
func maxAbs(a mat.Matrix) float64 {
	return floats.Norm(mat.DenseCopyOf(a).RawMatrix().Data, math.Inf(1))
}

// maxDifference returns max |a_ij − b_ij|.
func maxDifference(a, b mat.Matrix) float64 {
	var d mat.Dense
	d.Sub(a, b)
	return maxAbs(&d)
}

// uniform returns a random number that is uniformly distributed between lo and hi.
func uniform(g rng.Stream, lo, hi float64) float64 { return lo + (hi-lo)*g.Float64(0) }

// logUniform returns a random number between lo and hi whose logarithm is uniformly distributed.
func logUniform(g rng.Stream, lo, hi float64) float64 {
	return math.Exp(uniform(g, math.Log(lo), math.Log(hi)))
}

// denseInverse returns the matrix M⁻¹ that p applies.
func denseInverse(ctx context.Context, p Preconditioner) *mat.Dense {
	inv := mat.NewDense(p.Dim(), p.Dim(), nil)
	return must(inv, p.SolveTo(ctx, inv, mat.DenseCopyOf(identity(p.Dim()))))
}

// subtract returns a−b.
func subtract(a, b mat.Symmetric) *mat.SymDense {
	var d mat.SymDense
	d.ScaleSym(-1, b)
	d.AddSym(a, &d)
	return &d
}

// rowsOf returns the rows of x as points.
func rowsOf(x *mat.Dense) *points.Dense {
	n, d := x.Dims()
	return points.NewDense(n, d, x.RawMatrix().Data)
}
