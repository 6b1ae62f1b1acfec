package theory

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// Dense linear algebra of small matrices, from the definitions and in float64. It knows nothing of
// what it is compared with.

// symmetrized returns (b+bᵀ)/2.
func symmetrized(b mat.Matrix) *mat.SymDense {
	n, _ := b.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, (b.At(i, j)+b.At(j, i))/2)
		}
	}
	return s
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
	n := s.SymmetricDim()
	a := mat.NewSymDense(n, nil)
	a.CopySym(s)
	for i := range n {
		a.SetSym(i, i, a.At(i, i)+lambda)
	}
	return a
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
	l := mat.NewTriDense(a.SymmetricDim(), mat.Lower, nil)
	cholesky(a).LTo(l)
	return l
}

// inverted returns a⁻¹.
func inverted(a mat.Symmetric) *mat.SymDense {
	inv := mat.NewSymDense(a.SymmetricDim(), nil)
	well(cholesky(a).InverseTo(inv))
	return inv
}

// solution returns a⁻¹y.
func solution(a mat.Symmetric, y mat.Vector) *mat.VecDense {
	x := mat.NewVecDense(y.Len(), nil)
	well(cholesky(a).SolveVecTo(x, y))
	return x
}

// well panics if err is not nil, nor a warning that the matrix is badly conditioned.
func well(err error) {
	var badly mat.Condition
	if err != nil && !errors.As(err, &badly) {
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
	for i := range z.N {
		for j, v := range z.Row(i) {
			a.Set(i, j, float64(v))
		}
	}
	return a
}

// rounded returns z in float32, and rounds z itself to it.
func rounded(z *mat.Dense) *points.Dense32 {
	n, s := z.Dims()
	out := points.NewDense32(n, s, nil)
	for i := range n {
		for j := range s {
			v := float32(z.At(i, j))
			out.Row(i)[j] = v
			z.Set(i, j, float64(v))
		}
	}
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
	worst := 0.0
	r, c := a.Dims()
	for i := range r {
		for j := range c {
			if v := math.Abs(a.At(i, j)); !(v <= worst) {
				worst = v
			}
		}
	}
	return worst
}

// apart returns max |a_ij − b_ij|.
func apart(a, b mat.Matrix) float64 {
	var d mat.Dense
	d.Sub(a, b)
	return largest(&d)
}

// identity returns I.
func identity(n int) *mat.DiagDense {
	d := mat.NewDiagDense(n, nil)
	for i := range n {
		d.SetDiag(i, 1)
	}
	return d
}

// uniform returns a number between lo and hi, and spread one whose logarithm is uniform there.
func uniform(g rng.Stream, i uint64, lo, hi float64) float64 { return lo + (hi-lo)*g.Float64(i) }

func spread(g rng.Stream, i uint64, lo, hi float64) float64 {
	return math.Exp(uniform(g, i, math.Log(lo), math.Log(hi)))
}

// inverse returns M⁻¹ as p applies it.
func inverse(ctx context.Context, p Preconditioner) *mat.Dense {
	inv := mat.NewDense(p.Dim(), p.Dim(), nil)
	return must(inv, p.SolveTo(ctx, inv, mat.DenseCopyOf(identity(p.Dim()))))
}

// subtract sets s to s−b.
func subtract(s *mat.SymDense, b mat.Symmetric) {
	for i := range s.SymmetricDim() {
		for j := i; j < s.SymmetricDim(); j++ {
			s.SetSym(i, j, s.At(i, j)-b.At(i, j))
		}
	}
}
