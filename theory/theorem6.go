package theory

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/sketch"
	"github.com/krrlab/lab/plots"
)

// srhtConstant is the constant in the Ω of Theorem 6. It was found by experiment on eight such problems with δ/2 = 10
// %: with the constant 2, the second norm exceeded ¼ in 3 to 12 % of the draws. A larger constant requires more
// features.
const srhtConstant = 4

// srhtFeatures returns the s₂ of Theorem 6.
func srhtFeatures(statDim, delta float64) int {
	return int(math.Ceil(srhtConstant * statDim * math.Max(1, math.Log(statDim)) / (delta * delta)))
}

// theorem6Problem returns a problem with the kernel (xᵀz)².
func (e *experiment) theorem6Problem() *problem { return e.problem(homogeneous(2), 12, 12, 0.6, 1.8) }

// checkTheorem6 checks the errors of both levels of sketches, their consequences, and the growth of s₂ with s_λ.
func checkTheorem6(e *experiment) {
	const q, delta = 2, 0.2
	p := e.theorem6Problem()
	e.checkAtMost("λ/‖K‖₂", []float64{p.lambda / p.mu[p.n-1]}, 1)
	s1 := 1 << bits.Len(uint(32*(2+9)*p.statDim*p.statDim/delta)) // at least the s₁ of the theorem
	s2 := srhtFeatures(p.statDim, delta)
	out := p.drawTwoLevels(e, "two levels", s1, s2)
	name := fmt.Sprintf("s_λ = %.2g, δ = %g, s₁ = %d, s₂ = %d", p.statDim, delta, s1, s2)
	e.checkProbability("share of ‖QS₁ᵀS₁Qᵀ−QQᵀ‖_F > ¼, "+name, out.squares, 1.0/16, delta/2)
	e.checkProbability("share of ‖QS₁ᵀ(S₂ᵀS₂−I)S₁Qᵀ‖ > ¼, "+name, out.secondNorms, 0.25, delta/2)
	e.checkImplications(name, out.inequalityChain, delta)
	const fewFeatures = 60 // with s₁ features nearly every draw is far below the mean
	firstLevel := p.drawChain(e, "first level", e.parts.TensorSketch(homogeneous(q)), fewFeatures)
	e.checkMean(fmt.Sprintf("mean of ‖QS₁ᵀS₁Qᵀ−QQᵀ‖_F², s₁ = %d", fewFeatures), firstLevel.squares,
		p.expectation(q, fewFeatures), p.bound(q, fewFeatures))
	e.checkMean("mean of ‖QS₁ᵀ(S₂ᵀS₂−I)S₁Qᵀ‖_F² over its expectation given S₁", out.secondSquares, 1, 0)
	e.checkSpectralBound(name, out.inequalityChain)
	e.checkAtMost(fmt.Sprintf("power of s_λ in the s₂ that brings the second norm to ¼, over 1.5 (s_λ = %v)",
		scalingDims), []float64{fitPower(e.scaling()) / 1.5}, 1)
}

// twoLevels contains, for each draw of two levels, the errors of both levels, E₁ = QS₁ᵀS₁Qᵀ−QQᵀ and E₂ =
// QS₁ᵀ(S₂ᵀS₂−I)S₁Qᵀ.
type twoLevels struct {
	inequalityChain           // of E₁+E₂, except that squares are ‖E₁‖_F²
	secondNorms     []float64 // ‖E₂‖₂
	secondSquares   []float64 // ‖E₂‖_F² divided by its expectation given S₁
}

// drawTwoLevels draws, in every trial, Z₁ = V_qS₁ᵀ and Z₂ = Z₁S₂ᵀ for the kernel (xᵀz)².
func (p *problem) drawTwoLevels(e *experiment, name string, s1, s2 int) twoLevels {
	out := twoLevels{newInequalityChain(e.trials), make([]float64, e.trials), make([]float64, e.trials)}
	e.forEachTrial(name, e.trials, func(i int, g rng.Stream) {
		z1, z2 := e.drawLevels(2, s1, s2, p.x, g)
		y := solveLower(p.l, toFloat64(z1)) // QS₁ᵀ
		out.squares[i] = frobeniusSquared(p.whitenedError(toFloat64(z1)))
		secondError, unweighted := subtract(timesTranspose(solveLower(p.l, toFloat64(z2))), timesTranspose(y)),
			identity(p.n)
		out.secondNorms[i] = spectralNorm(secondError)
		out.secondSquares[i] = frobeniusSquared(secondError) / expectedWeightedSquare(unweighted, unweighted,
			srhtCovariance(rowsOf(y), s1, s2))
		z2 = compressColumns(z2)
		out.norms[i] = spectralNorm(p.whitenedError(toFloat64(z2)))
		preconditioner := e.preconditioner(z2, p.lambda, p.lambda, precond.FormLInv)
		out.kappas[i] = conditionNumber(e.preconditionedEigenvalues(p.l, preconditioner))
		out.pcgErrors[i] = p.pcgError(e, preconditioner, e.parts.Iterations(3, epsilon))
	})
	return out
}

// drawLevels draws the features Z₁ of x for the kernel (xᵀz)^q, and Z₂ = Z₁S₂ᵀ.
func (e *experiment) drawLevels(q, s1, s2 int, x *points.Dense, g rng.Stream) (z1, z2 *points.Dense32) {
	c := feature.Chain{Features: e.parts.TensorSketch(homogeneous(q)), Width: s1,
		Sketches: sketch.Composition{{Dist: e.parts.SRHT}}}
	m := must(c.Sample(x.D, s2, g)).(*feature.ChainMap)
	z1 = must(feature.Matrix(e.ctx, m.Level(1), x, nil))
	return z1, must(sketch.Apply(e.ctx, m.Sketch(2), z1, nil))
}

// scalingDims are the values of s_λ for which the growth of s₂ is measured.
var scalingDims = []int{2, 4, 8, 16}

// scalingDelta is the share of draws whose norm may exceed ¼.
const scalingDelta = 0.1

// scaling returns values of s_λ, and for each the s₂ for which the norm of the error of an SRHT is at most ¼ in a share
// 1−scalingDelta of the draws. It is extrapolated from one s₂, since the norm decreases as 1/√s₂. The spectra are flat:
// K has ⌈s_λ/0.9⌉ eigenvalues 9λ and no others, for which the stable rank of Q is s_λ/0.9. S₁ is a TensorSketch with q
// = 1 and 2,048 features.
func (e *experiment) scaling() (dims, needed []float64) {
	const s1 = 2048
	for _, dim := range scalingDims {
		rank := int(math.Ceil(float64(dim) / 0.9))
		g := e.random.Sub("flat", uint64(dim))
		qRows := mat.DenseCopyOf(orthogonal(g, rank+8).Slice(0, rank, 0, rank+8))
		qRows.Scale(math.Sqrt(0.9), qRows) // QQᵀ = 0.9·I
		q := rowsOf(qRows)
		statDim := 0.9 * float64(rank)
		s2 := int(16 * statDim * math.Max(1, math.Log(statDim)))
		norms := e.sample(fmt.Sprintf("flat %d", dim), max(minTrials, e.trials/4), func(g rng.Stream) float64 {
			z1, z2 := e.drawLevels(1, s1, s2, q, g)
			return spectralNorm(subtract(timesTranspose(toFloat64(z2)), timesTranspose(toFloat64(z1))))
		})
		slices.Sort(norms)
		quantile := stat.Quantile(1-scalingDelta, stat.Empirical, norms, nil)
		dims, needed = append(dims, statDim), append(needed, float64(s2)*16*quantile*quantile)
	}
	return dims, needed
}

// fitPower returns the exponent p of y ∝ x^p, by linear least squares on the logarithms.
func fitPower(x, y []float64) float64 {
	log := func(v []float64) []float64 { return tabulate(len(v), func(i int) float64 { return math.Log(v[i]) }) }
	_, slope := stat.LinearRegression(log(x), log(y), nil, false)
	return slope
}

// figureTheorem6 draws κ against s₂, and the s₂ that is needed against s_λ.
func figureTheorem6(e *experiment) *plots.Figure {
	const q = 2
	p := e.theorem6Problem()
	twoLevelSeries := pointSeries("κ of two levels, median and 5 to 95 %")
	oneLevel := pointSeries("κ of TensorSketch alone")
	for _, s := range []int{8, 16, 32, 64, 128, 256, 512} {
		twoLevelDraws := p.drawTwoLevels(e, fmt.Sprintf("figure %d", s), 4096, s)
		addDraws(&twoLevelSeries, float64(s), twoLevelDraws.kappas)
		oneLevelDraws := p.drawChain(e, fmt.Sprintf("one level %d", s), e.parts.TensorSketch(homogeneous(q)), s)
		addDraws(&oneLevel, float64(s)*1.12, oneLevelDraws.kappas)
	}
	leftPanel := plots.Sweep("κ after the second level", "s₂", "κ(M⁻¹A)",
		[]plots.RefLine{{At: float64(srhtFeatures(p.statDim, 0.2)), Label: "s₂ of the check"}}, twoLevelSeries,
		oneLevel)
	leftPanel.HLines = []plots.RefLine{{At: 3, Label: "3"}}
	dims, needed := e.scaling()
	neededSeries := pointSeries("s₂ that brings ‖QS₁ᵀ(S₂ᵀS₂−I)S₁Qᵀ‖ to ¼")
	logSeries := plots.Series{Name: "s_λ·ln s_λ, scaled"}
	squareSeries := plots.Series{Name: "s_λ², scaled"}
	growthLaw := func(d float64) float64 { return d * math.Max(1, math.Log(d)) }
	for i, d := range dims {
		neededSeries.Add(d, needed[i])
		logSeries.Add(d, needed[0]*growthLaw(d)/growthLaw(dims[0]))
		squareSeries.Add(d, needed[0]*d*d/(dims[0]*dims[0]))
	}
	rightPanel := plots.Sweep(fmt.Sprintf("Growth with s_λ: power %.2f", fitPower(dims, needed)), "s_λ", "s₂", nil,
		squareSeries, logSeries, neededSeries)
	rightPanel.X.Ticks = tickValues(scalingDims)
	return sideBySide("Theorem 6: an SRHT after TensorSketch", leftPanel, rightPanel)
}
