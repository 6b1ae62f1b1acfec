package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

var definition1 = Claim{
	Name: "definition1", Place: "Definition 1, section 3.2", Kind: Identity,
	Statement: "A = LQ with LLᵀ = AAᵀ+λI, L lower triangular, exists for every m×n matrix A and λ > 0, of any rank and shape: Q = L⁻¹A.\nFor λ = 0 and rank m Q has orthonormal rows.\n" +
		"With A = Zᵀ it is U: (ZZᵀ+λI)⁻¹ = λ⁻¹(I−QᵀQ).",
	Measured: "A−LQ and LLᵀ−AAᵀ−λI with the project's Cholesky factor, the entries of L above the diagonal, QQᵀ−I at λ = 0, and (I−λM⁻¹)−QᵀQ with M⁻¹ as each form of the preconditioner applies it.",
	Fails:    "a factor that is upper triangular, U from L⁻ᵀ in place of L⁻¹ (as printed), or λ where λ_p belongs, is no such Q.",
	run:      checkDefinition1,
}

// forms are the ways to hold M⁻¹.
var forms = []precond.Form{precond.FormL, precond.FormLInv, precond.FormU, precond.FormEigen}

// lq is a λ-LQ factorization of a random A = Zᵀ, m×n.
type lq struct {
	z      *points.Dense32 // n×m
	a      *mat.Dense      // m×n
	m, n   int
	lambda float64
	l      *mat.TriDense
	q      *mat.Dense
	aat    *mat.SymDense
}

// newLQ draws sizes from 1 to 12, a rank, singular values over three decades, and λ over six.
func newLQ(g rng.Stream) *lq {
	size := g.Sub("sizes")
	f := &lq{m: 1 + size.IntN(0, 12), n: 1 + size.IntN(1, 12), lambda: spread(g.Sub("lambda"), 0, 1e-3, 1e3)}
	rank := 1 + size.IntN(2, min(f.m, f.n))
	left, right := normals(g.Sub("left"), f.n, rank), normals(g.Sub("right"), rank, f.m)
	left.Apply(func(_, j int, v float64) float64 { return v * math.Pow(10, 0.5-3*float64(j)/12) }, left)
	var z mat.Dense
	z.Mul(left, right)
	f.z = rounded(&z)
	f.a = mat.DenseCopyOf(z.T())
	f.aat = outer(f.a)
	f.l = tiled(shifted(f.aat, f.lambda))
	f.q = solved(f.l, f.a)
	return f
}

// tiled is factor by the project's Cholesky.
func tiled(a *mat.SymDense) *mat.TriDense {
	n := a.SymmetricDim()
	c := mat.DenseCopyOf(a)
	if !accel.Dpotrf(n, c.RawMatrix().Data, n) {
		fail("a matrix of order %d is not positive definite", n)
	}
	l := mat.NewTriDense(n, mat.Lower, nil)
	for i := range n {
		for j := range i + 1 {
			l.SetTri(i, j, c.At(i, j))
		}
	}
	return l
}

func checkDefinition1(e *experiment) {
	out := e.sample("trial", e.trials, 3+len(forms), func(i int, g rng.Stream, out []float64) {
		f := newLQ(g)
		var lq, ll, qq mat.Dense
		lq.Mul(f.l, f.q)
		ll.Mul(f.l, f.l.T())
		a := shifted(f.aat, f.lambda)
		out[0] = apart(&lq, f.a) / largest(a)
		out[1] = apart(&ll, a) / largest(a)
		qq.Mul(f.q.T(), f.q)
		for k, form := range forms {
			inv := inverse(e.ctx, e.precond(f.z, f.lambda, f.lambda, form))
			inv.Scale(-f.lambda, inv)
			for i := range f.n {
				inv.Set(i, i, 1+inv.At(i, i)) // I − λM⁻¹
			}
			out[2+k] = apart(inv, &qq)
		}
		out[2+len(forms)] = orthonormal(g)
	})
	e.atMost("|A − LQ|/|AAᵀ+λI|", out[0], 1e-12)
	e.atMost("|LLᵀ − AAᵀ − λI|, relative", out[1], 1e-12)
	for k, form := range forms {
		e.atMost(fmt.Sprintf("|I − λM⁻¹ − QᵀQ|, form %v", form), out[2+k], 1e-9)
	}
	e.atMost("|QQᵀ − I| at λ = 0", out[2+len(forms)], 1e-9)
}

// orthonormal returns |QQᵀ−I| at λ = 0 for a well-conditioned m×n matrix, n ≥ m.
func orthonormal(g rng.Stream) float64 {
	size := g.Sub("orthonormal sizes")
	m := 1 + size.IntN(0, 8)
	n := m + size.IntN(1, 6)
	var a mat.Dense
	a.Mul(root(g.Sub("orthonormal"), values(m, func(i int) float64 { return 1 + float64(i) })), orthogonal(g.Sub("rows"), n).Slice(0, m, 0, n))
	return apart(outer(solved(tiled(outer(&a)), &a)), identity(m))
}

// values returns f(0), …, f(n−1).
func values(n int, f func(i int) float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = f(i)
	}
	return v
}
