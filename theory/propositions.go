package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/statdim"
)

var proposition2 = Claim{
	Name: "proposition2", Place: "Proposition 2, section 3.2", Kind: Identity,
	Statement: "QQᵀ + λL⁻¹L⁻ᵀ = I for the λ-LQ factorization A = LQ.",
	Measured:  "the largest entry of the difference, with QQᵀ = L⁻¹(A·M⁻¹·Aᵀ)L from the preconditioner's M⁻¹ = (AᵀA+λI)⁻¹.",
	Fails:     "M⁻¹ of another λ, or with a factor transposed, gives another QQᵀ.",
	run:       checkProposition2,
}

func checkProposition2(e *experiment) {
	out := e.sample("trial", e.trials, 2, func(i int, g rng.Stream, out []float64) {
		f := newLQ(g)
		rest := outer(solved(f.l, identity(f.m))) // L⁻¹L⁻ᵀ
		rest.ScaleSym(f.lambda, rest)
		direct := outer(f.q)
		direct.AddSym(direct, rest)
		out[0] = apart(direct, identity(f.m))
		inv := inverse(e.ctx, e.precond(f.z, f.lambda, f.lambda, forms[i%len(forms)]))
		var middle, sum mat.Dense
		middle.Product(f.a, inv, f.a.T()) // A(AᵀA+λI)⁻¹Aᵀ = L·QQᵀ·L⁻¹
		middle.Mul(solved(f.l, &middle), f.l)
		sum.Add(&middle, rest)
		out[1] = apart(&sum, identity(f.m))
	})
	e.atMost("|QQᵀ + λL⁻¹L⁻ᵀ − I|, Q = L⁻¹A", out[0], 1e-9)
	e.atMost("|QQᵀ + λL⁻¹L⁻ᵀ − I|, QQᵀ by M⁻¹", out[1], 1e-6)
}

var proposition3 = Claim{
	Name: "proposition3", Place: "Proposition 3, section 3.2", Kind: Identity,
	Statement: "‖Q‖_F² = s_λ(AAᵀ) = tr((AAᵀ+λI)⁻¹AAᵀ) = m − λ·tr((AAᵀ+λI)⁻¹) (the print has AAᵀ+I in the last).",
	Measured:  "‖Q‖_F², the statistical dimension that each form of the preconditioner states, and that of package statdim, against Σ σ²/(σ²+λ).",
	Fails:     "the printed proof's AAᵀ+I gives another number wherever λ ≠ 1, and so does a λ that is not λ_p's.",
	run:       checkProposition3,
}

func checkProposition3(e *experiment) {
	out := e.sample("trial", e.trials, 2+len(forms), func(i int, g rng.Stream, out []float64) {
		f := newLQ(g)
		var svd mat.SVD
		if !svd.Factorize(f.a, mat.SVDNone) {
			fail("no singular values")
		}
		want := 0.0
		for _, v := range svd.Values(nil) {
			want += v * v / (v*v + f.lambda)
		}
		out[0] = math.Abs(frobenius(f.q) - want)
		out[1] = statDimError(mat.DenseCopyOf(f.aat), f.lambda, want)
		for k, form := range forms {
			out[2+k] = math.Abs(e.precond(f.z, f.lambda, f.lambda, form).StatDim() - want)
		}
	})
	e.atMost("|‖Q‖_F² − s_λ|", out[0], 1e-9)
	e.atMost("|statdim.Exact − s_λ|", out[1], 1e-9)
	for k, form := range forms {
		e.atMost(fmt.Sprintf("|StatDim − s_λ|, form %v", form), out[2+k], 1e-9)
	}
}

var proposition8 = Claim{
	Name: "proposition8", Place: "Proposition 8, appendix", Kind: Identity,
	Statement: "K(Q,Q) + λL⁻¹L⁻ᵀ = I for q_i = Σ_j (L⁻¹)_ij k(x_j, ·), K+λI = LLᵀ.",
	Measured:  "the largest entry of the difference, with L from K as package gram stores it and the inner products ⟨q_i, q_j⟩ from the kernel's formula, for all kernels.",
	Fails:     "a K that is not the kernel's, or a factor transposed.",
	run:       checkProposition8,
}

// manyKernels are the kernels of Propositions 8 and 9.
var manyKernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 1.5}, kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 2},
	kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3},
}

// innerProducts returns K(Q, Q), its inner products by the kernel's formula, λL⁻¹L⁻ᵀ, K as stored, λ, and
// s_λ(K) by the eigenvalues of the formula's.
func (e *experiment) innerProducts(i int, g rng.Stream) (kqq, rest *mat.SymDense, stored *mat.Dense, lambda, statDim float64) {
	k := manyKernels[i%len(manyKernels)]
	size := g.Sub("sizes")
	x := cloud(g, 1+size.IntN(0, 14), 1+size.IntN(1, 4), 0.8)
	lambda = spread(g.Sub("lambda"), 0, 1e-2, 1e2)
	stored = e.kernel(k, x, lambda, gram.Float64)
	l := tiled(shifted(symmetrized(stored), lambda))
	byFormula := evaluated(k, x)
	rest = outer(solved(l, identity(x.N)))
	rest.ScaleSym(lambda, rest)
	return between(l, byFormula), rest, stored, lambda, degrees(eigenvalues(byFormula), lambda)
}

func checkProposition8(e *experiment) {
	out := e.sample("trial", e.trials, 1, func(i int, g rng.Stream, out []float64) {
		kqq, rest, _, _, _ := e.innerProducts(i, g)
		kqq.AddSym(kqq, rest)
		out[0] = apart(kqq, identity(kqq.SymmetricDim()))
	})
	e.atMost("|K(Q,Q) + λL⁻¹L⁻ᵀ − I|", out[0], 1e-9)
}

var proposition9 = Claim{
	Name: "proposition9", Place: "Proposition 9, appendix", Kind: Identity,
	Statement: "tr K(Q,Q) = s_λ(K) = n − λ·tr((K+λI)⁻¹) (the print has K+I).",
	Measured:  "the trace of ⟨q_i, q_j⟩ and what package statdim has, against Σ μ/(μ+λ).",
	Fails:     "the printed K+I gives another number wherever λ ≠ 1.",
	run:       checkProposition9,
}

func checkProposition9(e *experiment) {
	out := e.sample("trial", e.trials, 2, func(i int, g rng.Stream, out []float64) {
		kqq, _, stored, lambda, want := e.innerProducts(i, g)
		out[0] = math.Abs(mat.Trace(kqq) - want)
		out[1] = statDimError(stored, lambda, want)
	})
	e.atMost("|tr K(Q,Q) − s_λ(K)|", out[0], 1e-9)
	e.atMost("|statdim.Exact − s_λ(K)|", out[1], 1e-9)
}

// statDimError returns how far package statdim is from s_λ; it overwrites k.
func statDimError(k *mat.Dense, lambda, want float64) float64 {
	return math.Abs(must(statdim.Exact(k, 0, lambda, nil)).Estimate.Value - want)
}
