package theory

import (
	"context"
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

func trialProposition2(e *experiment, i int, g rng.Stream, t *trial) {
	f := newLQ(g)
	ridgeTerm := scaledInverse(f.l, f.lambda)
	identitySum := outer(f.q)
	identitySum.AddSym(identitySum, ridgeTerm)
	t.atMost("|QQᵀ + λL⁻¹L⁻ᵀ − I|, Q = L⁻¹A", maxDifference(identitySum, identity(f.m)), 1e-9)
	inv := denseInverse(e.ctx, e.precond(f.z, f.lambda, f.lambda, forms[i%len(forms)]))
	var projection, sum mat.Dense
	projection.Product(f.a, inv, f.a.T()) // A(AᵀA+λI)⁻¹Aᵀ = L·QQᵀ·L⁻¹
	projection.Mul(solveLower(f.l, &projection), f.l)
	sum.Add(&projection, ridgeTerm)
	t.atMost("|QQᵀ + λL⁻¹L⁻ᵀ − I|, QQᵀ by M⁻¹", maxDifference(&sum, identity(f.m)), 1e-6)
}

func trialProposition3(e *experiment, i int, g rng.Stream, t *trial) {
	f := newLQ(g)
	var svd mat.SVD
	if !svd.Factorize(f.a, mat.SVDNone) {
		fail("no singular values")
	}
	wantStatDim := 0.0
	for _, v := range svd.Values(nil) {
		wantStatDim += v * v / (v*v + f.lambda)
	}
	t.atMost("|‖Q‖_F² − s_λ|", math.Abs(frobeniusSquared(f.q)-wantStatDim), 1e-9)
	t.atMost("|statdim.Exact − s_λ|", statDimError(f.aat, f.lambda, wantStatDim), 1e-9)
	for _, form := range forms {
		statDim := e.precond(f.z, f.lambda, f.lambda, form).StatDim()
		t.atMost(fmt.Sprintf("|StatDim − s_λ|, form %v", form), math.Abs(statDim-wantStatDim), 1e-9)
	}
}

// manyKernels are the kernels for checks that hold for every kernel.
var manyKernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 1.5}, kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 2},
	kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3},
}

// innerProductProblem contains the quantities of Propositions 8 and 9 for a random problem.
type innerProductProblem struct {
	kqq       *mat.SymDense // K(Q, Q), with inner products by the kernel's formula
	ridgeTerm *mat.SymDense // λL⁻¹L⁻ᵀ
	stored    *mat.SymDense // the stored kernel matrix
	lambda    float64
	statDim   float64 // s_λ(K), from the eigenvalues of the kernel matrix by the formula
}

// innerProducts draws a problem with kernel number i of manyKernels.
func (e *experiment) innerProducts(i int, g rng.Stream) innerProductProblem {
	k := manyKernels[i%len(manyKernels)]
	size := g.Sub("sizes")
	x := cloud(g, 1+size.IntN(0, 14), 1+size.IntN(1, 4), 0.8)
	lambda := logUniform(g.Sub("lambda"), 1e-2, 1e2)
	stored := e.kernel(k, x, gram.Float64)
	l := choleskyByAccel(addRidge(stored, lambda))
	byFormula := kernelMatrix(k, x)
	return innerProductProblem{kqq: congruence(l, byFormula), ridgeTerm: scaledInverse(l, lambda), stored: stored,
		lambda: lambda, statDim: statDimOf(eigenvalues(byFormula), lambda)}
}

func trialProposition8(e *experiment, i int, g rng.Stream, t *trial) {
	p := e.innerProducts(i, g)
	p.kqq.AddSym(p.kqq, p.ridgeTerm)
	t.atMost("|K(Q,Q) + λL⁻¹L⁻ᵀ − I|", maxDifference(p.kqq, identity(p.kqq.SymmetricDim())), 1e-9)
}

func trialProposition9(e *experiment, i int, g rng.Stream, t *trial) {
	p := e.innerProducts(i, g)
	t.atMost("|tr K(Q,Q) − s_λ(K)|", math.Abs(mat.Trace(p.kqq)-p.statDim), 1e-9)
	t.atMost("|statdim.Exact − s_λ(K)|", statDimError(p.stored, p.lambda, p.statDim), 1e-9)
}

// statDimError returns the absolute error of the s_λ of package statdim, if want is the exact value.
func statDimError(k *mat.SymDense, lambda, wantStatDim float64) float64 {
	numbers := must(statdim.FromDense(context.Background(), mat.DenseCopyOf(k), 0, lambda, nil))
	return math.Abs(numbers.Estimate.Value - wantStatDim)
}

// scaledInverse returns λL⁻¹L⁻ᵀ.
func scaledInverse(l *mat.TriDense, lambda float64) *mat.SymDense {
	n, _ := l.Dims()
	s := outer(solveLower(l, identity(n)))
	s.ScaleSym(lambda, s)
	return s
}

func trialRemark1(e *experiment, _ int, g rng.Stream, t *trial) {
	size := g.Sub("sizes")
	k := kernel.Polynomial{
		Gamma: logUniform(g.Sub("gamma"), 0.1, 10), Coef0: logUniform(g.Sub("c"), 0.1, 10),
		Degree: 1 + size.IntN(0, 4),
	}
	x := cloud(g, 1+size.IntN(1, 8), 1+size.IntN(2, 6), 0.9)
	lifted := lift(k, x)
	b := kernelMatrix(homogeneous(k.Degree), lifted)
	t.atMost("|K − K of the lifted points|, relative",
		maxDifference(e.kernel(k, x, gram.Float64), b)/maxAbs(b), 1e-12)
	s := 1 + size.IntN(3, 40)
	z := featureMatrix(e.parts.TensorSketch(k), x, s, g)
	z0 := featureMatrix(e.parts.TensorSketch(homogeneous(k.Degree)), lifted, s, g)
	t.atMost("|Z − Z of the lifted points|, relative", maxDifference(z, z0)/maxAbs(z0), 1e-11)
}

func checkRemark2(e *experiment) {
	p := e.problem(homogeneous(2), 40, 8, 0.8, 10)
	kappaA := (p.mu[p.n-1] + p.lambda) / (math.Max(p.mu[0], 0) + p.lambda)
	yNorm := mat.Norm(p.y, 2)
	var insufficient atomic.Int64
	e.runTrials("trial", func(i int, g rng.Stream, t *trial) {
		z := p.features(e, e.parts.TensorSketch(homogeneous(2)), 16, g)
		m := e.precond(z, p.lambda, p.lambda, forms[i%len(forms)])
		tau := logUniform(g.Sub("tau"), 1e-6, 1e-1)
		c := e.solve(p.a, m, p.y, &pcg.Options{Tol: tau})
		t.atMost("‖y−Ac̃‖₂ over τ‖y‖₂", mat.Norm(residual(p.a, c, p.y), 2)/(tau*yNorm), 1+1e-9)
		t.atMost("‖c̃−c‖_A over τ√κ(A)·‖c‖_A", p.distance(c)/(tau*math.Sqrt(kappaA)), 1+1e-9)
		if p.pcgError(e, m, e.parts.Iterations(3, epsilon)) > epsilon {
			insufficient.Add(1)
		}
	})
	share := float64(insufficient.Load()) / float64(e.trials)
	e.requireSeen("share of draws in which the count does not suffice (wanted: some)", share, 1, share > 0)
}

// requireSeen adds a measure that fails if isSeen is false: without the observation, the check would be meaningless.
func (e *experiment) requireSeen(name string, value, limit float64, isSeen bool) {
	m := Measure{Name: name, Value: value, Limit: limit}
	if !isSeen {
		m.Ratio = 2
	}
	e.add(m)
}

func trialRemark3(e *experiment, i int, g rng.Stream, t *trial) {
	size := g.Sub("sizes")
	n := 2 + size.IntN(0, 14)
	x := cloud(g, n, 1+size.IntN(1, n), 0.8)
	k := e.kernel(homogeneous(1), x, gram.Float64)
	top := eigenvalues(kernelMatrix(homogeneous(1), x))[n-1]
	lambda := top * logUniform(g.Sub("lambda"), 1e-3, 1e2)
	t.atMost("κ(K+λI) over 1+‖K‖₂/λ", cond(eigenvalues(addRidge(k, lambda)))/(1+top/lambda), 1+1e-9)
	a := addRidge(k, top*uniform(g.Sub("above"), 1, 3))
	t.atMost("κ(K+λI) over 2 for λ ≥ ‖K‖₂", cond(eigenvalues(a))/2, 1+1e-9)
	pcgErr := solveError(e, a, g, e.parts.Iterations(2, epsilon))
	t.atMost("‖c̃−c‖_A/‖c‖_A over ε after the count for κ = 2", pcgErr/epsilon, 1)
}

// solveError returns ‖c̃−c‖_A/‖c‖_A after the given number of CG iterations, for a random right-hand side.
func solveError(e *experiment, a *mat.SymDense, g rng.Stream, iterations int) float64 {
	return solveErrorFor(e, a, vector(g.Sub("right-hand side"), a.SymmetricDim()), iterations)
}

// solveErrorFor returns ‖c̃−c‖_A/‖c‖_A after the given number of CG iterations, for the right-hand side y.
func solveErrorFor(e *experiment, a *mat.SymDense, y *mat.VecDense, iterations int) float64 {
	return (&problem{a: a, y: y, c: solve(a, y)}).pcgError(e, precond.Identity{N: y.Len()}, iterations)
}

func checkRemark4(e *experiment) {
	// Few iterations, and an ε that 24 features usually reach in them and 2 features do not.
	const runs, iterations, eps = 7, 4, 0.006
	p := e.problem(homogeneous(2), 30, 8, 0.9, 6)
	out := e.sample("trial", e.trials, 2, func(_ int, g rng.Stream, out []float64) {
		var xs []*mat.Dense
		for i := range runs {
			s := 24
			if g.Sub("few").IntN(uint64(i), 5) == 0 {
				s = 2 // with 2 features most candidates have an error above 3ε
			}
			z := p.features(e, e.parts.TensorSketch(homogeneous(2)), s, g.Sub("candidate", uint64(i)))
			c := e.solve(p.a, e.precond(z, p.lambda, p.lambda, precond.FormLInv), p.y,
				&pcg.Options{Tol: 1e-15, MaxIter: iterations})
			if !(p.distance(c) <= eps) {
				out[1]++
			}
			xs = append(xs, mat.DenseCopyOf(c))
		}
		out[0] = p.distance(must(e.parts.Choose(e.ctx, operator{p.a}, xs)).ColView(0))
	})
	chosen, badCounts := out[0], out[1]
	var ratios []float64
	for t, v := range badCounts {
		if v < runs/2.0 {
			ratios = append(ratios, chosen[t]/(3*eps))
		}
	}
	if len(ratios) == 0 {
		fail("no trial had most of its candidates within ε = %g", eps)
	}
	e.atMost(fmt.Sprintf("the chosen error over 3ε, where most of %d are within ε = %g", runs, eps), ratios, 1)
	candidates, beyondCount := e.trials*runs, floats.Sum(badCounts)
	share := beyondCount / float64(candidates)
	e.requireSeen("p, the share of candidates beyond ε (wanted: between 0 and ½)", share, 0.5, share > 0 && share < 0.5)
	// delta is computed from an upper confidence bound on p over all candidates.
	maxShare := 1 - clopperPearson(candidates-int(beyondCount), candidates)
	delta := 1 - distuv.Binomial{N: runs, P: maxShare}.CDF((runs-1)/2) // P(bad ≥ R/2), R odd
	e.atMostProbability(fmt.Sprintf("share of choices beyond 3ε, R = %d, p = %.2g", runs, share), chosen, 3*eps, delta)
}
