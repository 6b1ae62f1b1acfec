package theory

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage/verify"
	"github.com/krrlab/lab/plots"
)

// SufficientFeatures returns the smallest number of TensorSketch features for which Theorem 1 guarantees κ(M⁻¹A) ≤ 3
// with probability at least 1−δ, for the kernel (xᵀz)^q and λ_p = λ:
//
//	s ≥ 4(2+3^q)·s_λ(K)²/δ.
//
// The result is a float64 because it is often larger than any number of features that can be used; in practice far
// fewer features are sufficient. SufficientFeatures panics unless q ≥ 1, s_λ ≥ 0 and 0 < δ < 1.
func SufficientFeatures(q int, statDim, delta float64) float64 {
	if q < 1 || !(statDim >= 0) || !(delta > 0 && delta < 1) {
		panic(fmt.Sprintf("theory: SufficientFeatures(q=%d, s_λ=%g, δ=%g): want q ≥ 1, s_λ ≥ 0 and 0 < δ < 1", q,
			statDim, delta))
	}
	return math.Ceil(4 * (2 + math.Pow(3, float64(q))) * statDim * statDim / delta)
}

// trialIterations checks the error after the claimed number of CG iterations for a random spectrum, and for Chebyshev's
// points.
func trialIterations(e *experiment, i int, g rng.Stream, t *trial) {
	const n = 30
	kappa, eps := logUniform(g.Sub("kappa"), 1.5, 300), logUniform(g.Sub("epsilon"), 1e-4, 0.3)
	randomSpectrum := tabulate(n, func(i int) float64 { return 1 + (kappa-1)*g.Sub("eigenvalues").Float64(uint64(i)) })
	randomSpectrum[0], randomSpectrum[1] = 1, kappa
	errorRatio := func(j uint64, v []float64) float64 {
		return solveError(e, withSpectrum(g.Sub("basis", j), v), g, e.parts.Iterations(kappa, eps)) / eps
	}
	t.checkAtMost("‖c̃−c‖_A/‖c‖_A over ε, random spectra", errorRatio(0, randomSpectrum), 1)
	t.checkAtMost("‖c̃−c‖_A/‖c‖_A over ε, Chebyshev's points", errorRatio(1, chebyshevExtrema(n, kappa)), 1)
}

// chebyshevExtrema returns n points of [1, κ], the extrema of a Chebyshev polynomial of degree n−1.
func chebyshevExtrema(n int, kappa float64) []float64 {
	return tabulate(n, func(i int) float64 {
		return (1+kappa)/2 - (kappa-1)/2*math.Cos(math.Pi*float64(i)/float64(n-1))
	})
}

// checkHardestSystems runs k iterations of CG on the systems for which it is slowest. The eigenvalues are the k+1
// extrema x_i of a Chebyshev polynomial, for which every polynomial p of degree k with p(0) = 1 has max |p(x_i)| ≥
// 1/T_k((κ+1)/(κ−1)). The contributions of the eigenvectors to the squared A-norm of the solution are the weights
// |l_i(0)|, with Lagrange's polynomials l_i; for these weights the mean square of p is not smaller either. ε is the
// error that the bound guarantees after k iterations.
func checkHardestSystems(e *experiment) {
	var ratios []float64
	for _, kappa := range []float64{3, 10, 100} {
		for _, k := range []int{2, 4, 8} {
			eps := math.Min(2*math.Exp(-2*float64(k)/math.Sqrt(kappa))*(1+1e-12), 1)
			x := chebyshevExtrema(k+1, kappa)
			a, y := mat.NewSymDense(k+1, nil), mat.NewVecDense(k+1, nil)
			for i := range x {
				weight := 1.0
				for j := range x {
					if j != i {
						weight *= math.Abs(x[j] / (x[j] - x[i]))
					}
				}
				a.SetSym(i, i, x[i])
				y.SetVec(i, math.Sqrt(x[i]*weight))
			}
			ratios = append(ratios, solveErrorFor(e, a, y, e.parts.Iterations(kappa, eps))/eps)
		}
	}
	e.checkAtMost("‖c̃−c‖_A/‖c‖_A over ε, the hardest right-hand sides", ratios, 1)
}

// figureIterations draws the error of CG and its bound against the number of iterations.
func figureIterations(e *experiment) *plots.Figure {
	const n, kappa = 200, 30.0
	bound := plots.Series{Name: "2e^{−2k/√κ}, the bound"}
	uniformSeries := plots.Series{Name: "error ‖c̃−c‖_{A}/‖c‖_{A}, uniform spectrum"}
	chebyshevSeries := plots.Series{Name: "error, Chebyshev's points"}
	g := e.random.Sub("figure")
	uniformSpectrum := tabulate(n, func(i int) float64 { return 1 + (kappa-1)*float64(i)/(n-1) })
	easyMatrix, hardMatrix := withSpectrum(g.Sub("easy"), uniformSpectrum), withSpectrum(g.Sub("hard"),
		chebyshevExtrema(n, kappa))
	for k := 1; k <= 24; k++ {
		addPoint(&bound, k, 2*math.Exp(-2*float64(k)/math.Sqrt(kappa)))
		addPoint(&uniformSeries, k, solveError(e, easyMatrix, g, k))
		addPoint(&chebyshevSeries, k, solveError(e, hardMatrix, g, k))
	}
	f := plots.Sweep("The count ⌈(√κ/2)·ln(2/ε)⌉: κ = 30", "iterations k", "‖c̃−c‖_{A} / ‖c‖_{A}", nil, bound,
		chebyshevSeries, uniformSeries)
	f.X.Log = false
	return f
}

// PredictionBound returns the bound √k(x,x)·‖r‖₂/(2√λ) on |f(x)−f̃(x)| for a residual r = y−(K+λI)c̃
// against the exact K.
//
// Proof. f−f̃ = k_xᵀA⁻¹r, and ‖A⁻¹k_x‖₂² ≤ k(x,x)·max_μ μ/(μ+λ)² ≤ k(x,x)/(4λ), since k_xk_xᵀ ≼ k(x,x)·K.
func PredictionBound(diag, residual, lambda float64) float64 {
	return math.Sqrt(diag) * residual / (2 * math.Sqrt(lambda))
}

// trialPrediction checks the bound on the error of a prediction, and that of package verify.
func trialPrediction(e *experiment, i int, g rng.Stream, t *trial) {
	size := g.Sub("sizes")
	k := manyKernels[i%len(manyKernels)]
	x := randomPoints(g, 6+size.IntN(0, 10), 2+size.IntN(1, 3), 0.8)
	lambda := logUniform(g.Sub("lambda"), 1e-3, 10)
	ratio, verified := e.predictionRatios(k, x, randomPoints(g.Sub("new"), 5, x.D, 0.8), lambda, g)
	t.checkAtMost("|f−f̃| over its bound", ratio, 1+1e-6)
	t.checkAtMost("|f−f̃| over the bound of package verify", verified, 1+1e-6)
}

// checkTightPrediction checks a point at which the bound is attained.
func checkTightPrediction(e *experiment) {
	var ratios []float64
	for _, lambda := range []float64{0.01, 0.5, 4} {
		x := points.NewDense(1, 1, []float64{math.Sqrt(lambda)}) // k(x,x) = x² = λ
		ratio, _ := e.predictionRatios(homogeneous(1), x, x, lambda, e.random.Sub("tight"))
		ratios = append(ratios, ratio)
	}
	e.checkAtMost("|f−f̃| over its bound, where it is met", ratios, 1+1e-9)
}

// predictionRatios returns the largest |f−f̃| at the points x and z, divided by PredictionBound and by the bound of
// package verify. f̃ has the coefficients of a solve that is stopped after two iterations.
func (e *experiment) predictionRatios(k kernel.Kernel, x, z *points.Dense, lambda float64,
	g rng.Stream) (ratio, verified float64) {
	a := addRidge(kernelMatrix(k, x), lambda)
	y := gaussianVector(g.Sub("y"), x.N)
	exact := solve(a, y)
	operator := e.storedMatrix(k, x, lambda)
	c := must(e.parts.Solve(e.ctx, operator, precond.Identity{N: x.N}, mat.DenseCopyOf(y),
		&pcg.Options{Tol: logUniform(g.Sub("tol"), 1e-2, 0.5), MaxIter: 2})).X
	if x.N == 1 { // otherwise the solve would be exact
		c.Scale(0.5, c)
	}
	residualNorm := mat.Norm(residual(a, c.ColView(0), y), 2)
	v := must(verify.New(e.ctx, nil, must(kernel.ToSpec(k)), x, 1<<30, nil))
	coef, target := c.RawMatrix().Data, y.RawVector().Data
	ax, rounding, err := v.Apply(e.ctx, coef, 1, lambda)
	res := v.Residual(must(ax, err), rounding, coef, target, 1, lambda)
	m := &model.Model{Kernel: k, Lambda: lambda, X: x, C: c}
	for _, evalPoints := range []*points.Dense{x, z} {
		decision := must(m.Decision(e.ctx, evalPoints, &model.Options{Float64: true}))
		p := must(v.Predict(e.ctx, evalPoints, coef, 1, res, lambda))
		for i := range evalPoints.N {
			f := 0.0
			for j := range x.N {
				f += exact.AtVec(j) * k.Eval(x.Row(j), evalPoints.Row(i))
			}
			diff := math.Abs(f - decision.At(i, 0))
			diag := k.Eval(evalPoints.Row(i), evalPoints.Row(i))
			ratio = math.Max(ratio, diff/e.parts.PredictionBound(diag, residualNorm, lambda))
			verified = math.Max(verified, diff/p.Bound[i])
		}
	}
	return ratio, verified
}

// LeaveOneOut returns the leave-one-out residuals y_i − f₋ᵢ(x_i) = c_i/(A⁻¹)_ii, where f₋ᵢ is fitted without point i. c
// are the coefficients of the fit to all points, and diag is the diagonal of A⁻¹, A = K+λI. The formula is Allen's
// PRESS; see also G. Wahba, Spline Models for Observational Data, SIAM 1990, section 4.2.
func LeaveOneOut(c, diag []float64) []float64 {
	out := make([]float64, len(c))
	for i := range out {
		out[i] = c[i] / diag[i]
	}
	return out
}

// trialLeaveOneOut compares the leave-one-out residuals with those of fits without one point.
func trialLeaveOneOut(e *experiment, i int, g rng.Stream, t *trial) {
	size := g.Sub("sizes")
	k := manyKernels[i%len(manyKernels)]
	x := randomPoints(g, 2+size.IntN(0, 8), 1+size.IntN(1, 3), 0.8)
	lambda := logUniform(g.Sub("lambda"), 1e-2, 10)
	y := gaussianVector(g.Sub("y"), x.N)
	c := e.fitCoefficients(k, x, lambda, y)
	inv := inverse(addRidge(kernelMatrix(k, x), lambda))
	want := e.parts.LeaveOneOut(c, tabulate(x.N, func(i int) float64 { return inv.At(i, i) }))
	for i := range x.N {
		deleteRow := func(v []float64, d int) []float64 { return slices.Delete(slices.Clone(v), i*d, (i+1)*d) }
		remainingPoints := points.NewDense(x.N-1, x.D, deleteRow(x.Data, x.D))
		remainingY := mat.NewVecDense(remainingPoints.N, deleteRow(y.RawVector().Data, 1))
		remainingC := e.fitCoefficients(k, remainingPoints, lambda, remainingY)
		f := 0.0
		for j, v := range remainingC {
			f += v * k.Eval(remainingPoints.Row(j), x.Row(i))
		}
		t.checkAtMost("|y_i − f₋ᵢ(x_i) − c_i/(A⁻¹)_ii|/‖y‖₂", math.Abs(y.AtVec(i)-f-want[i])/mat.Norm(y, 2), 1e-6)
	}
}

// fitCoefficients returns c = (K+λI)⁻¹y, computed with the project's kernel matrix and PCG.
func (e *experiment) fitCoefficients(k kernel.Kernel, x *points.Dense, lambda float64, y *mat.VecDense) []float64 {
	a := addRidge(e.storedKernel(k, x, gram.Float64), lambda)
	return mat.Col(nil, 0, e.solve(a, precond.Identity{N: x.N}, y, &pcg.Options{Tol: 1e-12}))
}

// fixedStep is the distance h between neighboring 16-bit fixed-point numbers in [0, 1].
const fixedStep = 1.0 / 65535

// storedError returns the storage error E = K̃ − K of the 16-bit kernel matrix K̃ of n random points, and K.
func (e *experiment) storedError(n int, g rng.Stream) (storageError, k *mat.SymDense) {
	gauss := kernel.Gaussian{Sigma: uniform(g.Sub("sigma"), 1, 3)}
	x := randomPoints(g, n, 5, 0.9)
	k = kernelMatrix(gauss, x)
	return subtract(e.storedKernel(gauss, x, gram.Fixed16), k), k
}

// trialFixed16 checks the size of the rounding errors of a kernel matrix in 16-bit fixed point, and the convergence of
// iterative refinement with it.
func trialFixed16(e *experiment, _ int, g rng.Stream, t *trial) {
	const n = 100
	storageError, k := e.storedError(n, g)
	t.checkAtMost("|E_ij| over h/2", maxAbs(storageError)/(fixedStep/2),
		1.1) // 1.1 also allows for the float32 distances
	rms := math.Sqrt(frobeniusSquared(storageError) / (n * (n - 1)))
	t.checkMean("mean of rms(E) over h/√12", rms/(fixedStep/math.Sqrt(12)), 1)
	// The semicircle law predicts ‖E‖₂ ≈ 2·rms·√n; the limits 1.15 and 1.3 allow for the fluctuation at n = 100.
	size := spectralNorm(storageError)
	edge := size / (2 * rms * math.Sqrt(n))
	t.checkAtMost("‖E‖₂ over 2·rms·√n", edge, 1.15)
	t.checkAtMost("2·rms·√n over ‖E‖₂", 1/edge, 1.3)
	lambda := logUniform(g.Sub("lambda"), 3*size, 1e-2)
	a := addRidge(k, lambda)
	stored := mat.NewSymDense(n, nil)
	stored.AddSym(a, storageError)

	// Iterative refinement: solves with the stored matrix, and residuals with the exact one.
	y := gaussianVector(g.Sub("y"), n)
	x, r, chol := mat.NewVecDense(n, nil), mat.VecDenseCopyOf(y), cholesky(stored)
	for j := 1.0; j <= 3; j++ {
		checkSolve(chol.SolveVecTo(r, r))
		x.AddVec(x, r)
		r = residual(a, x, y)
		rate := math.Max(math.Pow(size/(lambda-size), j), 1e-10)
		t.checkAtMost(fmt.Sprintf("residual after %g solves over (‖E‖₂/(λ−‖E‖₂))^%g", j, j),
			mat.Norm(r, 2)/mat.Norm(y, 2)/rate, 1+1e-6)
	}
}

// figureFixed16 draws ‖E‖₂ and its prediction by the semicircle law against n.
func figureFixed16(e *experiment) *plots.Figure {
	semicircle := plots.Series{Name: "2·h/√12·√n"}
	measured := pointSeries("‖E‖₂, median and 5 to 95 %")
	sizes := []int{16, 32, 64, 128, 256}
	for _, n := range sizes {
		addDraws(&measured, float64(n), e.sample(fmt.Sprintf("figure %d", n), max(minTrials, e.trials/8),
			func(g rng.Stream) float64 {
				storageError, _ := e.storedError(n, g)
				return spectralNorm(storageError)
			}))
		addPoint(&semicircle, n, 2*fixedStep/math.Sqrt(12*1.0)*math.Sqrt(float64(n)))
	}
	f := plots.Sweep("K in 16-bit fixed point", "n", "‖E‖₂", nil, semicircle, measured)
	f.X.Ticks = tickValues(sizes)
	return f
}
