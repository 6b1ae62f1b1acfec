package theory

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
	"github.com/krrlab/lab/plots"
)

// conditions returns the smallest α and γ for which K and ZZᵀ meet the conditions of Theorem 7 with θ. The conditions
// guarantee nothing if γ ≥ 1.
func conditions(k, zz *mat.SymDense, lambda, theta float64) sketchsize.ConditionConstants {
	var eigen mat.EigenSym
	if !eigen.Factorize(zz, true) {
		fail("no eigenvalues of ZZᵀ")
	}
	values := eigen.Values(nil)
	n := len(values)
	var vectors, rotated mat.Dense
	eigen.VectorsTo(&vectors)
	rotated.Product(vectors.T(), k, &vectors) // K in the basis of the eigenvectors of ZZᵀ
	firstLarge := slices.IndexFunc(values, func(spectrum float64) bool { return spectrum > theta*lambda })
	if firstLarge < 0 {
		firstLarge = n
	}
	constants := sketchsize.ConditionConstants{Theta: theta}
	if firstLarge > 0 {
		constants.Alpha = math.Max(eigenvalues(symmetricPart(rotated.Slice(0, firstLarge, 0,
			firstLarge)))[firstLarge-1], 0) / lambda
	}
	if firstLarge < n {
		b := symmetricPart(rotated.Slice(firstLarge, n, firstLarge, n))
		for i := range n - firstLarge {
			for j := i; j < n-firstLarge; j++ {
				b.SetSym(i, j, b.At(i, j)/math.Sqrt(values[firstLarge+i]*values[firstLarge+j]))
			}
		}
		spectrum := eigenvalues(b)
		constants.Gamma = max(1-spectrum[0], spectrum[len(spectrum)-1]-1, 0)
	}
	return constants
}

// trialGeneral checks that the eigenvalues of M⁻¹A are within the bounds of the smallest constants that a random pair
// of matrices meets.
func trialGeneral(e *experiment, i int, g rng.Stream, t *trial) {
	for attempt := uint64(0); ; attempt++ { // draw again until γ < 1
		g := g.Sub("try", attempt)
		p := newMatrixPair(g, 8)
		lambda := logUniform(g.Sub("lambda"), 1e-2, 1e2)
		c := conditions(p.k, timesTranspose(toFloat64(p.z)), lambda, uniform(g.Sub("theta"), 0, 0.6))
		if !(c.Gamma < 1) {
			continue
		}
		v := p.spectrum(e, lambda, lambda, forms[i%len(forms)])
		low, high := e.parts.SpectrumBounds(c)
		t.checkAtMost("the lower bound over the least eigenvalue", low/v[0], 1+1e-6)
		t.checkAtMost("the largest eigenvalue over the upper bound", v[len(v)-1]/high, 1+1e-6)
		return
	}
}

// checkTightConditions checks pairs of matrices that meet the constants of the presets and nearly attain the bounds.
func checkTightConditions(e *experiment) {
	for _, c := range presets {
		low, high := e.parts.SpectrumBounds(c)
		var lows, highs []float64
		for _, large := range []float64{1e2, 1e4} {
			// λ = 1. The second coordinate is orthogonal to the range of the projection P; its eigenvalue is θ or 0.
			atUpperBound := e.tightPair(large, 0, math.Sqrt((1+c.Gamma)*large), math.Sqrt(c.Alpha))
			atLowerBound := e.tightPair(large, c.Theta, math.Sqrt((1-c.Gamma)*large), math.Sqrt(c.Alpha))
			highs, lows = append(highs, atUpperBound[1]/high), append(lows, low/atLowerBound[0])
		}
		e.checkAtMost(fmt.Sprintf("the largest eigenvalue over the upper bound, %s, pairs that come to it", c.Name),
			highs, 1+1e-6)
		e.checkAtMost(fmt.Sprintf("the lower bound over the least eigenvalue, %s, pairs that come to it", c.Name), lows,
			1+1e-6)
	}
}

// tightPair returns the two eigenvalues of M⁻¹A for K = vvᵀ, v = (v₁, v₂), ZZᵀ = diag(z₁, z₂) and λ = λ_p = 1.
func (e *experiment) tightPair(z1, z2, v1, v2 float64) []float64 {
	z := mat.NewDense(2, 2, []float64{math.Sqrt(z1), 0, 0, math.Sqrt(z2)})
	p := &matrixPair{k: timesTranspose(mat.NewDense(2, 1, []float64{v1, v2})), z: roundToFloat32(z)}
	return p.spectrum(e, 1, 1, precond.FormEigen)
}

// trialLambdaP checks the bound on κ for a random λ_p and for λ_p = λ+η, and that the bound is smallest there.
func trialLambdaP(e *experiment, i int, g rng.Stream, t *trial) {
	p := newMatrixPair(g, 8)
	lambda := logUniform(g.Sub("lambda"), 1e-2, 10)
	otherLambdaP := logUniform(g.Sub("lambda_p"), lambda*1e-2, 1e2*(lambda+p.eta))
	form := forms[i%len(forms)]
	boundRatio := func(ridge float64) float64 {
		return conditionNumber(p.spectrum(e, lambda, ridge, form)) / e.parts.RidgeBound(lambda, ridge, p.eta)
	}
	t.checkAtMost("κ over its bound, any λ_p", boundRatio(otherLambdaP), 1+1e-6)
	t.checkAtMost("κ over its bound at λ_p = λ+η, 1+2η/λ", boundRatio(lambda+p.eta), 1+1e-6)
	boundAtBest := e.parts.RidgeBound(lambda, lambda+p.eta, p.eta)
	t.checkAtMost("the bound at λ+η over 1+2η/λ and over that at any λ_p, less 1",
		math.Max(math.Abs(boundAtBest/(1+2*p.eta/lambda)-1),
			boundAtBest/e.parts.RidgeBound(lambda, otherLambdaP, p.eta)-1), 1e-12)
	var product mat.Dense
	product.Mul(addRidge(timesTranspose(toFloat64(p.z)), otherLambdaP), denseInverse(e.ctx, e.preconditioner(p.z,
		lambda, otherLambdaP, form)))
	t.checkAtMost("|M·M⁻¹ − I|", maxDifference(&product, identity(p.z.N)), 1e-6)
}

// checkTightRidge checks a pair of matrices that attains the bound at every λ_p in [λ−η, λ+η].
func checkTightRidge(e *experiment) {
	p := &matrixPair{k: mat.NewSymDense(2, []float64{1, 0, 0, 0}), z: points.NewDense32(2, 1, []float32{0, 1}), eta: 1}
	var ratios []float64
	for _, c := range []struct{ lambda, lambdaP float64 }{{0.5, 0.5}, {0.5, 1.5}, {0.5, 1}, {2, 1}, {2, 3}, {0.01,
		1.01}} {
		kappa := conditionNumber(p.spectrum(e, c.lambda, c.lambdaP, precond.FormLInv))
		ratios = append(ratios, kappa/e.parts.RidgeBound(c.lambda, c.lambdaP, 1))
	}
	e.checkAtMost("κ over its bound for K = diag(1, 0), ZZᵀ = diag(0, 1), where it is met", ratios, 1+1e-9)
}

// figureLambdaP draws κ and its bound against λ_p.
func figureLambdaP(e *experiment) *plots.Figure {
	g := e.random.Sub("figure")
	const lambda = 0.01
	k := kernel.Gaussian{Sigma: 1.5}
	x := randomPoints(g, 60, 4, 0.8)
	var series []plots.Series
	var ridgeLines []plots.RefLine
	for _, s := range []int{40, 640} {
		p := matrixPairOf(kernelMatrix(k, x), compressColumns(roundToFloat32(featureMatrix(e.parts.Fourier(k), x, s,
			g))))
		bound := plots.Series{Name: fmt.Sprintf("bound, s = %d", s)}
		kappa := plots.Series{Name: fmt.Sprintf("κ, s = %d", s)}
		for i := range 81 {
			lambdaP := 1e-4 * math.Pow(10, 6*float64(i)/80)
			bound.Add(lambdaP, e.parts.RidgeBound(lambda, lambdaP, p.eta))
			kappa.Add(lambdaP, conditionNumber(p.spectrum(e, lambda, lambdaP, precond.FormEigen)))
		}
		series = append(series, bound, kappa)
		ridgeLines = append(ridgeLines, plots.RefLine{At: lambda + p.eta, Label: fmt.Sprintf("λ+η, s = %d", s)})
	}
	ridgeLines = append(ridgeLines, plots.RefLine{At: lambda, Label: "λ"})
	return plots.Sweep("The ridge of the preconditioner: λ = 0.01, Fourier features", "λ_p", "κ(M⁻¹A)", ridgeLines,
		series...)
}

// matrixPair is a pair of small matrices: K, and Z in float32 with ZZᵀ close to K.
type matrixPair struct {
	k   *mat.SymDense
	z   *points.Dense32
	eta float64 // ‖K−ZZᵀ‖₂
}

// newMatrixPair draws an n×n matrix K with eigenvalues over five decades, and a Z with at most n columns.
func newMatrixPair(g rng.Stream, n int) *matrixPair {
	closeness := logUniform(g.Sub("closeness"), 1e-3, 1)
	root := spectrumRoot(g.Sub("K"), tabulate(n, func(i int) float64 {
		return math.Pow(10,
			1-5*float64(i)/float64(n))
	}))
	var z mat.Dense
	noise := gaussianMatrix(g.Sub("noise"), n, n)
	noise.Scale(closeness/math.Sqrt(float64(n)), noise)
	z.Mul(root, noise)
	z.Add(&z, root)
	columns := mat.DenseCopyOf(z.Slice(0, n, 0, 1+g.Sub("columns").IntN(0, n)))
	return matrixPairOf(timesTranspose(root), roundToFloat32(columns))
}

// matrixPairOf returns the pair of K and Z with its η.
func matrixPairOf(k *mat.SymDense, z *points.Dense32) *matrixPair {
	return &matrixPair{k: k, z: z, eta: spectralNorm(subtract(timesTranspose(toFloat64(z)), k))}
}

// spectrum returns the eigenvalues of M⁻¹A, ascending, with M⁻¹ as the preconditioner applies it.
func (p *matrixPair) spectrum(e *experiment, lambda, lambdaP float64, form precond.Form) []float64 {
	l := choleskyFactor(addRidge(p.k, lambda))
	return e.preconditionedEigenvalues(l, e.preconditioner(p.z, lambda, lambdaP, form))
}

// checkNystrom checks the bound 1 + tr(K−K̂)/λ on κ for the low-rank factors of Nyström and of RPCholesky.
func checkNystrom(e *experiment) {
	for i, build := range e.parts.LowRank {
		name := "κ over 1+tr(K−K̂)/λ, " + []string{"Nyström", "RPCholesky", "method"}[min(i, 2)]
		e.runTrials(fmt.Sprintf("method %d", i), func(i int, g rng.Stream, t *trial) {
			size := g.Sub("sizes")
			x := randomPoints(g, 4+size.IntN(0, 12), 3, 0.8)
			kernelFunction := manyKernels[i%len(manyKernels)]
			k, lambda := kernelMatrix(kernelFunction, x), logUniform(g.Sub("lambda"), 1e-2, 1)
			exactKernel := e.storedMatrix(kernelFunction, x, lambda).Exact(0)
			// The bound is 1 + tr(K−FFᵀ)/λ, with the same allowance for the rounding of F as in
			// lowrank.Factor.CondBound.
			boundRatio := func(j uint64, rank int) float64 {
				factor := must(build(e.ctx, exactKernel, rank, g.Sub("draw", j), nil))
				traceError := mat.Trace(k) - frobeniusSquared(toFloat64(factor.F))
				return conditionNumber((&matrixPair{k: k, z: factor.F}).spectrum(e, lambda, lambda,
					precond.FormEigen)) /
					(1 + (math.Max(traceError, 0)+2*factor.Rounding)/(lambda-factor.Rounding))
			}
			t.checkAtMost(name+", any rank", boundRatio(0, 1+size.IntN(1, x.N-1)), 1+1e-6)
			t.checkAtMost(name+", rank n−1", boundRatio(1, x.N-1), 1+1e-6)
		})
	}
}
