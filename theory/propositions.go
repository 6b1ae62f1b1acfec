package theory

import (
	"fmt"
	"math"
	"sync/atomic"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage/statdim"
)

func checkProposition2(e *experiment) {
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		f := newLQ(g)
		rest := scaledInverse(f.l, f.lambda)
		direct := outer(f.q)
		direct.AddSym(direct, rest)
		t.atMost("|QQᵀ + λL⁻¹L⁻ᵀ − I|, Q = L⁻¹A", apart(direct, identity(f.m)), 1e-9)
		inv := inverse(e.ctx, e.precond(f.z, f.lambda, f.lambda, forms[i%len(forms)]))
		var middle, sum mat.Dense
		middle.Product(f.a, inv, f.a.T()) // A(AᵀA+λI)⁻¹Aᵀ = L·QQᵀ·L⁻¹
		middle.Mul(solved(f.l, &middle), f.l)
		sum.Add(&middle, rest)
		t.atMost("|QQᵀ + λL⁻¹L⁻ᵀ − I|, QQᵀ by M⁻¹", apart(&sum, identity(f.m)), 1e-6)
	})
}

func checkProposition3(e *experiment) {
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		f := newLQ(g)
		var svd mat.SVD
		if !svd.Factorize(f.a, mat.SVDNone) {
			fail("no singular values")
		}
		want := 0.0
		for _, v := range svd.Values(nil) {
			want += v * v / (v*v + f.lambda)
		}
		t.atMost("|‖Q‖_F² − s_λ|", math.Abs(frobenius(f.q)-want), 1e-9)
		t.atMost("|statdim.Exact − s_λ|", statDimError(f.aat, f.lambda, want), 1e-9)
		for _, form := range forms {
			got := e.precond(f.z, f.lambda, f.lambda, form).StatDim()
			t.atMost(fmt.Sprintf("|StatDim − s_λ|, form %v", form), math.Abs(got-want), 1e-9)
		}
	})
}

// manyKernels are the kernels of Propositions 8 and 9.
var manyKernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 1.5}, kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 2},
	kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3},
}

// innerProducts returns K(Q, Q), its inner products by the kernel's formula, λL⁻¹L⁻ᵀ, K as stored, λ, and
// s_λ(K) by the eigenvalues of the formula's.
func (e *experiment) innerProducts(i int, g rng.Stream) (kqq, rest, stored *mat.SymDense, lambda, statDim float64) {
	k := manyKernels[i%len(manyKernels)]
	size := g.Sub("sizes")
	x := cloud(g, 1+size.IntN(0, 14), 1+size.IntN(1, 4), 0.8)
	lambda = spread(g.Sub("lambda"), 1e-2, 1e2)
	stored = e.kernel(k, x, gram.Float64)
	l := tiled(shifted(stored, lambda))
	byFormula := evaluated(k, x)
	return between(l, byFormula), scaledInverse(l, lambda), stored, lambda, degrees(eigenvalues(byFormula), lambda)
}

func checkProposition8(e *experiment) {
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		kqq, rest, _, _, _ := e.innerProducts(i, g)
		kqq.AddSym(kqq, rest)
		t.atMost("|K(Q,Q) + λL⁻¹L⁻ᵀ − I|", apart(kqq, identity(kqq.SymmetricDim())), 1e-9)
	})
}

func checkProposition9(e *experiment) {
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		kqq, _, stored, lambda, want := e.innerProducts(i, g)
		t.atMost("|tr K(Q,Q) − s_λ(K)|", math.Abs(mat.Trace(kqq)-want), 1e-9)
		t.atMost("|statdim.Exact − s_λ(K)|", statDimError(stored, lambda, want), 1e-9)
	})
}

// statDimError returns how far package statdim is from s_λ.
func statDimError(k *mat.SymDense, lambda, want float64) float64 {
	return math.Abs(must(statdim.Dense(mat.DenseCopyOf(k), 0, lambda, nil)).Estimate.Value - want)
}

// scaledInverse returns λL⁻¹L⁻ᵀ.
func scaledInverse(l *mat.TriDense, lambda float64) *mat.SymDense {
	n, _ := l.Dims()
	s := outer(solved(l, identity(n)))
	s.ScaleSym(lambda, s)
	return s
}

func checkRemark1(e *experiment) {
	e.try("trial", func(_ int, g rng.Stream, t *trial) {
		size := g.Sub("sizes")
		k := kernel.Polynomial{
			Gamma: spread(g.Sub("gamma"), 0.1, 10), Coef0: spread(g.Sub("c"), 0.1, 10),
			Degree: 1 + size.IntN(0, 4),
		}
		x := cloud(g, 1+size.IntN(1, 8), 1+size.IntN(2, 6), 0.9)
		up := lifted(k, x)
		b := evaluated(plain(k.Degree), up)
		t.atMost("|K − K of the lifted points|, relative", apart(e.kernel(k, x, gram.Float64), b)/largest(b), 1e-12)
		s := 1 + size.IntN(3, 40)
		z := mapped(e.parts.TensorSketch(k), x, s, g)
		z0 := mapped(e.parts.TensorSketch(plain(k.Degree)), up, s, g)
		t.atMost("|Z − Z of the lifted points|, relative", apart(z, z0)/largest(z0), 1e-11)
	})
}

func checkRemark2(e *experiment) {
	p := e.problem(plain(2), 40, 8, 0.8, 10)
	kappaA := (p.mu[p.n-1] + p.lambda) / (math.Max(p.mu[0], 0) + p.lambda)
	norm := mat.Norm(p.y, 2)
	var failed atomic.Int64
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		z := p.features(e, e.parts.TensorSketch(plain(2)), 16, g)
		m := e.precond(z, p.lambda, p.lambda, forms[i%len(forms)])
		tau := spread(g.Sub("tau"), 1e-6, 1e-1)
		c := e.solve(p.a, m, p.y, &pcg.Options{Tol: tau})
		t.atMost("‖y−Ac̃‖₂ over τ‖y‖₂", mat.Norm(residual(p.a, c, p.y), 2)/(tau*norm), 1+1e-9)
		t.atMost("‖c̃−c‖_A over τ√κ(A)·‖c‖_A", p.distance(c)/(tau*math.Sqrt(kappaA)), 1+1e-9)
		if p.missed(e, m, e.parts.Iterations(3, epsilon)) > epsilon {
			failed.Add(1)
		}
	})
	share := float64(failed.Load()) / float64(e.trials)
	e.wanted("share of draws in which the count does not suffice (wanted: some)", share, 1, share > 0)
}

// wanted adds the measure of what must be seen for a check to be one.
func (e *experiment) wanted(name string, value, limit float64, seen bool) {
	m := Measure{Name: name, Value: value, Limit: limit}
	if !seen {
		m.Ratio = 2
	}
	e.add(m)
}

func checkRemark3(e *experiment) {
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		size := g.Sub("sizes")
		n := 2 + size.IntN(0, 14)
		x := cloud(g, n, 1+size.IntN(1, n), 0.8)
		k := e.kernel(plain(1), x, gram.Float64)
		top := eigenvalues(evaluated(plain(1), x))[n-1]
		lambda := top * spread(g.Sub("lambda"), 1e-3, 1e2)
		t.atMost("κ(K+λI) over 1+‖K‖₂/λ", cond(eigenvalues(shifted(k, lambda)))/(1+top/lambda), 1+1e-9)
		a := shifted(k, top*uniform(g.Sub("above"), 1, 3))
		t.atMost("κ(K+λI) over 2 for λ ≥ ‖K‖₂", cond(eigenvalues(a))/2, 1+1e-9)
		missed := solveError(e, a, g, e.parts.Iterations(2, epsilon))
		t.atMost("‖c̃−c‖_A/‖c‖_A over ε after the count for κ = 2", missed/epsilon, 1)
	})
}

// solveError returns ‖c̃−c‖_A/‖c‖_A of CG for a random right-hand side, and solveErrorFor for y.
func solveError(e *experiment, a *mat.SymDense, g rng.Stream, iterations int) float64 {
	return solveErrorFor(e, a, vector(g.Sub("right-hand side"), a.SymmetricDim()), iterations)
}

func solveErrorFor(e *experiment, a *mat.SymDense, y *mat.VecDense, iterations int) float64 {
	return (&problem{a: a, y: y, c: solution(a, y)}).missed(e, precond.Identity{N: y.Len()}, iterations)
}

func checkRemark4(e *experiment) {
	const runs, iterations = 7, 4
	p := e.problem(plain(2), 30, 8, 0.9, 6)
	const eps = 0.006
	out := e.sample("trial", e.trials, 2, func(_ int, g rng.Stream, out []float64) {
		var xs []*mat.Dense
		for i := range runs {
			s := 24
			if g.Sub("few").IntN(uint64(i), 5) == 0 {
				s = 2 // of which most candidates are beyond 3ε
			}
			z := p.features(e, e.parts.TensorSketch(plain(2)), s, g.Sub("candidate", uint64(i)))
			c := e.solve(p.a, e.precond(z, p.lambda, p.lambda, precond.FormLInv), p.y,
				&pcg.Options{Tol: 1e-15, MaxIter: iterations})
			if !(p.distance(c) <= eps) {
				out[1]++
			}
			xs = append(xs, mat.DenseCopyOf(c))
		}
		out[0] = p.distance(must(e.parts.Choose(e.ctx, operator{p.a}, xs)).ColView(0))
	})
	chosen, bad := out[0], out[1]
	var ratios []float64
	for t, v := range bad {
		if v < runs/2.0 {
			ratios = append(ratios, chosen[t]/(3*eps))
		}
	}
	if len(ratios) == 0 {
		fail("no trial had most of its candidates within ε = %g", eps)
	}
	e.atMost(fmt.Sprintf("the chosen error over 3ε, where most of %d are within ε = %g", runs, eps), ratios, 1)
	all, beyond := e.trials*runs, floats.Sum(bad)
	share := beyond / float64(all)
	e.wanted("p, the share of candidates beyond ε (wanted: between 0 and ½)", share, 0.5, share > 0 && share < 0.5)
	// δ of what p may be at most, seen over all candidates.
	worst := 1 - clopperPearson(all-int(beyond), all)
	delta := 1 - distuv.Binomial{N: runs, P: worst}.CDF((runs-1)/2) // P(bad ≥ R/2), R odd
	e.share(fmt.Sprintf("share of choices beyond 3ε, R = %d, p = %.2g", runs, share), chosen, 3*eps, delta)
}
