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

// trialProposition2 checks QQᵀ + λL⁻¹L⁻ᵀ = I for Q from the factorization, and for the QQᵀ that M⁻¹ implies.
func trialProposition2(e *experiment, i int, g rng.Stream, t *trial) {
	f := newLQ(g)
	ridgeTerm := scaledInverse(f.l, f.lambda)
	identitySum := timesTranspose(f.q)
	identitySum.AddSym(identitySum, ridgeTerm)
	t.checkAtMost("|QQᵀ + λL⁻¹L⁻ᵀ − I|, Q = L⁻¹A", maxDifference(identitySum, identity(f.m)), 1e-9)
	inv := denseInverse(e.ctx, e.preconditioner(f.z, f.lambda, f.lambda, forms[i%len(forms)]))
	var projection, sum mat.Dense
	projection.Product(f.a, inv, f.a.T()) // A(AᵀA+λI)⁻¹Aᵀ = L·QQᵀ·L⁻¹
	projection.Mul(solveLower(f.l, &projection), f.l)
	sum.Add(&projection, ridgeTerm)
	t.checkAtMost("|QQᵀ + λL⁻¹L⁻ᵀ − I|, QQᵀ by M⁻¹", maxDifference(&sum, identity(f.m)), 1e-6)
}

// trialProposition3 compares ‖Q‖_F² and the statistical dimensions of packages statdim and precond with s_λ from the
// singular values.
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
	t.checkAtMost("|‖Q‖_F² − s_λ|", math.Abs(frobeniusSquared(f.q)-wantStatDim), 1e-9)
	t.checkAtMost("|statdim.Exact − s_λ|", statDimError(f.aat, f.lambda, wantStatDim), 1e-9)
	for _, form := range forms {
		statDim := e.preconditioner(f.z, f.lambda, f.lambda, form).StatDim()
		t.checkAtMost(fmt.Sprintf("|StatDim − s_λ|, form %v", form), math.Abs(statDim-wantStatDim), 1e-9)
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
	x := randomPoints(g, 1+size.IntN(0, 14), 1+size.IntN(1, 4), 0.8)
	lambda := logUniform(g.Sub("lambda"), 1e-2, 1e2)
	stored := e.storedKernel(k, x, gram.Float64)
	l := choleskyByAccel(addRidge(stored, lambda))
	byFormula := kernelMatrix(k, x)
	return innerProductProblem{kqq: congruence(l, byFormula), ridgeTerm: scaledInverse(l, lambda), stored: stored,
		lambda: lambda, statDim: statDimOf(eigenvalues(byFormula), lambda)}
}

// trialProposition8 checks K(Q,Q) + λL⁻¹L⁻ᵀ = I.
func trialProposition8(e *experiment, i int, g rng.Stream, t *trial) {
	p := e.innerProducts(i, g)
	p.kqq.AddSym(p.kqq, p.ridgeTerm)
	t.checkAtMost("|K(Q,Q) + λL⁻¹L⁻ᵀ − I|", maxDifference(p.kqq, identity(p.kqq.SymmetricDim())), 1e-9)
}

// trialProposition9 compares tr K(Q,Q) and the s_λ of package statdim with s_λ(K).
func trialProposition9(e *experiment, i int, g rng.Stream, t *trial) {
	p := e.innerProducts(i, g)
	t.checkAtMost("|tr K(Q,Q) − s_λ(K)|", math.Abs(mat.Trace(p.kqq)-p.statDim), 1e-9)
	t.checkAtMost("|statdim.Exact − s_λ(K)|", statDimError(p.stored, p.lambda, p.statDim), 1e-9)
}

// statDimError returns the absolute error of the s_λ of package statdim, if want is the exact value.
func statDimError(k *mat.SymDense, lambda, wantStatDim float64) float64 {
	numbers := must(statdim.FromDense(context.Background(), mat.DenseCopyOf(k), 0, lambda, nil))
	return math.Abs(numbers.Estimate.Value - wantStatDim)
}

// scaledInverse returns λL⁻¹L⁻ᵀ.
func scaledInverse(l *mat.TriDense, lambda float64) *mat.SymDense {
	n, _ := l.Dims()
	s := timesTranspose(solveLower(l, identity(n)))
	s.ScaleSym(lambda, s)
	return s
}

// trialRemark1 checks that the kernel (γxᵀz+c)^q and its TensorSketch equal those of (xᵀz)^q for the lifted points.
func trialRemark1(e *experiment, _ int, g rng.Stream, t *trial) {
	size := g.Sub("sizes")
	k := kernel.Polynomial{
		Gamma: logUniform(g.Sub("gamma"), 0.1, 10), Coef0: logUniform(g.Sub("c"), 0.1, 10),
		Degree: 1 + size.IntN(0, 4),
	}
	x := randomPoints(g, 1+size.IntN(1, 8), 1+size.IntN(2, 6), 0.9)
	lifted := lift(k, x)
	liftedGram := kernelMatrix(homogeneous(k.Degree), lifted)
	t.checkAtMost("|K − K of the lifted points|, relative",
		maxDifference(e.storedKernel(k, x, gram.Float64), liftedGram)/maxAbs(liftedGram), 1e-12)
	s := 1 + size.IntN(3, 40)
	z := featureMatrix(e.parts.TensorSketch(k), x, s, g)
	liftedZ := featureMatrix(e.parts.TensorSketch(homogeneous(k.Degree)), lifted, s, g)
	t.checkAtMost("|Z − Z of the lifted points|, relative", maxDifference(z, liftedZ)/maxAbs(liftedZ), 1e-11)
}

// checkRemark2 checks the error in the A-norm of a solution whose residual meets a tolerance, and that the number of
// iterations for κ = 3 does not suffice for some draws of too few features.
func checkRemark2(e *experiment) {
	p := e.problem(homogeneous(2), 40, 8, 0.8, 10)
	kappaA := (p.mu[p.n-1] + p.lambda) / (math.Max(p.mu[0], 0) + p.lambda)
	yNorm := mat.Norm(p.y, 2)
	var insufficient atomic.Int64
	e.runTrials("trial", func(i int, g rng.Stream, t *trial) {
		z := p.features(e, e.parts.TensorSketch(homogeneous(2)), 16, g)
		m := e.preconditioner(z, p.lambda, p.lambda, forms[i%len(forms)])
		tau := logUniform(g.Sub("tau"), 1e-6, 1e-1)
		c := e.solve(p.a, m, p.y, &pcg.Options{Tol: tau})
		t.checkAtMost("‖y−Ac̃‖₂ over τ‖y‖₂", mat.Norm(residual(p.a, c, p.y), 2)/(tau*yNorm), 1+1e-9)
		t.checkAtMost("‖c̃−c‖_A over τ√κ(A)·‖c‖_A", p.distance(c)/(tau*math.Sqrt(kappaA)), 1+1e-9)
		if p.pcgError(e, m, e.parts.Iterations(3, epsilon)) > epsilon {
			insufficient.Add(1)
		}
	})
	share := float64(insufficient.Load()) / float64(e.trials)
	e.requireBetween("share of draws in which the count does not suffice (wanted: some)", share, 1, 0, math.Inf(1))
}

// requireBetween adds a measure that fails unless low < value < high: otherwise the check would be meaningless.
func (e *experiment) requireBetween(name string, value, limit, low, high float64) {
	m := Measure{Name: name, Value: value, Limit: limit}
	if !(low < value && value < high) {
		m.Ratio = 2
	}
	e.addMeasure(m)
}

// trialRemark3 checks κ(K+λI) ≤ 1+‖K‖₂/λ, and the number of iterations without a preconditioner for λ ≥ ‖K‖₂.
func trialRemark3(e *experiment, i int, g rng.Stream, t *trial) {
	size := g.Sub("sizes")
	n := 2 + size.IntN(0, 14)
	x := randomPoints(g, n, 1+size.IntN(1, n), 0.8)
	k := e.storedKernel(homogeneous(1), x, gram.Float64)
	largestEigenvalue := eigenvalues(kernelMatrix(homogeneous(1), x))[n-1]
	lambda := largestEigenvalue * logUniform(g.Sub("lambda"), 1e-3, 1e2)
	t.checkAtMost("κ(K+λI) over 1+‖K‖₂/λ", conditionNumber(eigenvalues(addRidge(k,
		lambda)))/(1+largestEigenvalue/lambda), 1+1e-9)
	a := addRidge(k, largestEigenvalue*uniform(g.Sub("above"), 1, 3))
	t.checkAtMost("κ(K+λI) over 2 for λ ≥ ‖K‖₂", conditionNumber(eigenvalues(a))/2, 1+1e-9)
	pcgErr := solveError(e, a, g, e.parts.Iterations(2, epsilon))
	t.checkAtMost("‖c̃−c‖_A/‖c‖_A over ε after the count for κ = 2", pcgErr/epsilon, 1)
}

// solveError returns ‖c̃−c‖_A/‖c‖_A after the given number of CG iterations, for a random right-hand side.
func solveError(e *experiment, a *mat.SymDense, g rng.Stream, iterations int) float64 {
	return solveErrorFor(e, a, gaussianVector(g.Sub("right-hand side"), a.SymmetricDim()), iterations)
}

// solveErrorFor returns ‖c̃−c‖_A/‖c‖_A after the given number of CG iterations, for the right-hand side y.
func solveErrorFor(e *experiment, a *mat.SymDense, y *mat.VecDense, iterations int) float64 {
	return (&problem{a: a, y: y, c: solve(a, y)}).pcgError(e, precond.Identity{N: y.Len()}, iterations)
}

// checkRemark4 checks the choice among several candidate solutions: its error is at most 3ε if most candidates have an
// error of at most ε, and the probability of a larger error is that of a binomial distribution.
func checkRemark4(e *experiment) {
	// Few iterations, and an ε that 24 features usually reach in them and 2 features do not.
	const runs, iterations, eps = 7, 4, 0.006
	p := e.problem(homogeneous(2), 30, 8, 0.9, 6)
	chosenErrors, badCounts := make([]float64, e.trials), make([]float64, e.trials)
	e.forEachTrial("trial", e.trials, func(trialIndex int, g rng.Stream) {
		var candidates []*mat.Dense
		for i := range runs {
			s := 24
			if g.Sub("few").IntN(uint64(i), 5) == 0 {
				s = 2 // with 2 features most candidates have an error above 3ε
			}
			z := p.features(e, e.parts.TensorSketch(homogeneous(2)), s, g.Sub("candidate", uint64(i)))
			c := e.solve(p.a, e.preconditioner(z, p.lambda, p.lambda, precond.FormLInv), p.y,
				&pcg.Options{Tol: 1e-15, MaxIter: iterations})
			if !(p.distance(c) <= eps) {
				badCounts[trialIndex]++
			}
			candidates = append(candidates, mat.DenseCopyOf(c))
		}
		chosenErrors[trialIndex] = p.distance(must(e.parts.Choose(e.ctx, operator{p.a}, candidates)).ColView(0))
	})
	var ratios []float64
	for trialIndex, badCount := range badCounts {
		if badCount < runs/2.0 {
			ratios = append(ratios, chosenErrors[trialIndex]/(3*eps))
		}
	}
	if len(ratios) == 0 {
		fail("no trial had most of its candidates within ε = %g", eps)
	}
	e.checkAtMost(fmt.Sprintf("the chosen error over 3ε, where most of %d are within ε = %g", runs, eps), ratios, 1)
	candidateCount, beyondCount := e.trials*runs, floats.Sum(badCounts)
	share := beyondCount / float64(candidateCount)
	e.requireBetween("p, the share of candidates beyond ε (wanted: between 0 and ½)", share, 0.5, 0, 0.5)
	// delta is computed from an upper confidence bound on p over all candidates.
	maxShare := 1 - clopperPearson(candidateCount-int(beyondCount), candidateCount)
	delta := 1 - distuv.Binomial{N: runs, P: maxShare}.CDF((runs-1)/2) // P(bad ≥ R/2), R odd
	e.checkProbability(fmt.Sprintf("share of choices beyond 3ε, R = %d, p = %.2g", runs, share), chosenErrors, 3*eps,
		delta)
}
