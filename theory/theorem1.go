package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/plots"
)

// epsilon is the accuracy ε = ‖c̃−c‖_A/‖c‖_A that the checks require of PCG after the claimed number of iterations.
const epsilon = 1e-3

// solveSlack is an allowance for rounding errors in ‖c̃−c‖_A/‖c‖_A, for problems with κ(A) up to a million.
const solveSlack = 1e-9

// compressColumns returns the n×n matrix R in Z = RW with WWᵀ = I. Since RRᵀ = ZZᵀ, R gives the same M as Z with n
// instead of s columns; the theorems require s to be much larger than n. It returns z if s ≤ n.
func compressColumns(z *points.Dense32) *points.Dense32 {
	if z.D <= z.N {
		return z
	}
	var lq mat.LQ
	var l mat.Dense
	lq.Factorize(toFloat64(z))
	lq.LTo(&l)
	return roundToFloat32(mat.DenseCopyOf(l.Slice(0, z.N, 0, z.N)))
}

// inequalityChain contains, for each draw of features, the quantities in the chain of inequalities that proves Theorems
// 1, 5 and 6. W is L⁻¹(ZZᵀ−K)L⁻ᵀ.
type inequalityChain struct {
	squares   []float64 // ‖W‖_F²
	norms     []float64 // ‖W‖₂
	kappas    []float64 // κ(M⁻¹A)
	pcgErrors []float64 // ‖c̃−c‖_A/‖c‖_A after the claimed number of iterations
}

// drawChain draws s features in every trial. M⁻¹ is formed from the compressed features, or from all features for the
// form L.
func (p *problem) drawChain(e *experiment, name string, d feature.Dist, s int) inequalityChain {
	draws := newInequalityChain(e.trials)
	e.forEachTrial(name, e.trials, func(i int, g rng.Stream) {
		z, form := p.features(e, d, s, g), formOf(i)
		draws.squares[i] = frobeniusSquared(p.whitenedError(toFloat64(z)))
		if form != precond.FormL {
			z = compressColumns(z)
		}
		draws.norms[i] = spectralNorm(p.whitenedError(toFloat64(z)))
		m := e.preconditioner(z, p.lambda, p.lambda, form)
		draws.kappas[i] = conditionNumber(e.preconditionedEigenvalues(p.l, m))
		draws.pcgErrors[i] = p.pcgError(e, m, e.parts.Iterations(3, epsilon))
	})
	return draws
}

// newInequalityChain returns a chain for n draws.
func newInequalityChain(n int) inequalityChain {
	return inequalityChain{make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)}
}

// formOf returns the form of M⁻¹ for draw i. The form L, which uses all features, is used once; the others take turns.
func formOf(i int) precond.Form {
	if i == 0 {
		return precond.FormL
	}
	return forms[1+i%(len(forms)-1)]
}

// checkGuarantee adds the measures of the chain of inequalities for an s for which it holds with probability 1−δ.
func (e *experiment) checkGuarantee(p *problem, name string, d feature.Dist, s int, delta float64) inequalityChain {
	draws := p.drawChain(e, name, d, s)
	name = fmt.Sprintf("%s, s_λ = %.2g, δ = %g, s = %d", name, p.statDim, delta, s)
	e.checkProbability("share of ‖QSᵀSQᵀ−QQᵀ‖_F > ½, "+name, draws.squares, 0.25, delta)
	e.checkImplications(name, draws, delta)
	return draws
}

// checkImplications adds the measures of the last two inequalities of the chain.
func (e *experiment) checkImplications(name string, draws inequalityChain, delta float64) {
	e.checkProbability("share of κ > 3, "+name, draws.kappas, 3*(1+1e-9), delta)
	e.checkProbability("share of ‖c̃−c‖_A > ε‖c‖_A, "+name, draws.pcgErrors, epsilon+solveSlack, delta)
}

// checkSpectralBound adds the measure of an inequality that holds for every draw: κ ≤ (1+e)/(1−e) if e = ‖W‖₂ < 1.
func (e *experiment) checkSpectralBound(name string, draws inequalityChain) {
	var ratios []float64
	for i, v := range draws.norms {
		if v < 0.99 {
			ratios = append(ratios, draws.kappas[i]*(1-v)/(1+v))
		}
	}
	if len(ratios) > 0 {
		e.checkAtMost("κ·(1−e)/(1+e) for e = ‖QSᵀSQᵀ−QQᵀ‖₂, "+name, ratios, 1+1e-6)
	}
}

// theorem1Problem returns a problem with the kernel (xᵀz)^q, for q = 2 or 3.
func (e *experiment) theorem1Problem(q int) *problem {
	return e.problem(homogeneous(q), 16, 12, 0.8, map[int]float64{2: 2, 3: 1.5}[q])
}

// checkTheorem1 checks the guarantee of Theorem 1 for its number of features, and the mean squared error for fewer.
func checkTheorem1(e *experiment) {
	for _, q := range []int{2, 3} {
		p := e.theorem1Problem(q)
		const delta = 0.2
		name := fmt.Sprintf("q = %d", q)
		d := e.parts.TensorSketch(homogeneous(q))
		s := int(math.Ceil(SufficientFeatures(q, p.statDim, delta)))
		draws := e.checkGuarantee(p, name, d, s, delta)
		e.checkSpectralBound(name, draws)
		draws = p.drawChain(e, name+" less", d, 60)
		e.checkMean(fmt.Sprintf("mean of ‖QSᵀSQᵀ−QQᵀ‖_F², q = %d, s = 60", q), draws.squares, p.expectation(q, 60),
			p.bound(q, 60))
		e.checkSpectralBound(name+", s = 60", draws)
	}
}

// expectation returns E‖QSᵀSQᵀ−QQᵀ‖_F² for TensorSketch with s features.
func (p *problem) expectation(q, s int) float64 {
	return expectedWeightedSquare(p.inv, p.inv, tensorSketchCovariance(p.x, q, s))
}

// bound returns the bound of Lemma 4 on expectation, (2+3^q)s_λ²/s.
func (p *problem) bound(q, s int) float64 {
	return lemma4Bound(q, s) * p.statDim * p.statDim
}

// figureTheorem1 draws the squared error of the proof and κ against s, with their bounds.
func figureTheorem1(e *experiment) *plots.Figure {
	const q, delta = 2, 0.2
	p := e.theorem1Problem(q)
	bound := plots.Series{Name: "bound (2+3^{q})s_λ²/s"}
	kappaBound := plots.Series{Name: "κ by the bound, (1+e)/(1−e)"}
	sizes := []int{15, 30, 60, 120, 240, 480, 900, 1800}
	for _, s := range sizes {
		addPoint(&bound, s, p.bound(q, s))
		addKappa(&kappaBound, s, p.bound(q, s)/delta)
	}
	expectation := func(s int) float64 { return p.expectation(q, s) }
	leftPanel, rightPanel := p.chainFigure(e, e.parts.TensorSketch(homogeneous(q)), sizes, expectation,
		"E‖QSᵀSQᵀ − QQᵀ‖_{F}^{2}", delta,
		plots.RefLine{At: SufficientFeatures(q, p.statDim, delta), Label: "s of Theorem 1"}, kappaBound)
	leftPanel.Series = append([]plots.Series{bound}, leftPanel.Series...)
	return sideBySide("Theorem 1: (xᵀz)², s_λ = 2, δ = 0.2", leftPanel, rightPanel)
}

// addKappa appends the bound on κ that ‖W‖_F² ≤ square implies: (1+e)/(1−e) with e = √square. It appends nothing if e
// is close to 1 or larger.
func addKappa(series *plots.Series, s int, square float64) {
	if e := math.Sqrt(square); e < 0.95 {
		addPoint(series, s, (1+e)/(1-e))
	}
}

// chainFigure returns two panels against s, for draws of the features d. The left panel shows the quantity that the
// proof of Theorems 1 and 5 bounds, and its expectation. The right panel shows the implied κ and its bound.
func (p *problem) chainFigure(e *experiment, d feature.Dist, sizes []int, expectation func(s int) float64,
	square string, delta float64, sufficient plots.RefLine, bound plots.Series) (leftPanel, rightPanel *plots.Figure) {
	exact := plots.Series{Name: "expectation"}
	mean := pointSeries("mean of draws")
	kappa := pointSeries("κ of draws, median and 5 to 95 %")
	for _, s := range sizes {
		out := p.drawChain(e, fmt.Sprintf("figure %d", s), d, s)
		addPoint(&exact, s, expectation(s))
		addPoint(&mean, s, stat.Mean(out.squares, nil))
		addDraws(&kappa, float64(s), out.kappas)
	}
	sufficientLine := []plots.RefLine{sufficient}
	leftPanel = plots.Sweep("What the proof bounds", "s", square, sufficientLine, exact, mean)
	leftPanel.HLines = []plots.RefLine{{At: delta / 4, Label: "δ/4"}}
	rightPanel = plots.Sweep("What it implies", "s", "κ(M⁻¹A)", sufficientLine, bound, kappa)
	rightPanel.HLines = []plots.RefLine{{At: 3, Label: "3"}}
	return leftPanel, rightPanel
}

// sideBySide returns a figure with two panels side by side.
func sideBySide(title string, leftPanel, rightPanel *plots.Figure) *plots.Figure {
	f := plots.Grid(title, 2, leftPanel, rightPanel)
	f.Width, f.Height = 9, 4.2
	return f
}

// products contains two matrices A = αφ(x) and B = βφ(x) whose rows are linear combinations of the images of some
// points, so that ASᵀSBᵀ = α·ZZᵀ·βᵀ. φ(x) is x⊗…⊗x for TensorSketch, and k(x, ·) for any kernel.
type products struct {
	name        string
	x           *points.Dense
	dist        feature.Dist
	cov         func(s int) covariance
	degree      int           // degree q of a homogeneous polynomial kernel; 0 for other kernels
	gram        *mat.SymDense // K = φ(x)φ(x)ᵀ
	alpha, beta *mat.Dense
	size        float64 // ‖A‖_F²‖B‖_F² = tr(αKαᵀ)·tr(βKβᵀ)
}

// products returns the matrices for random coefficients α and β.
func (e *experiment) products(name string, k kernel.Kernel, x *points.Dense, d feature.Dist,
	cov func(s int) covariance) *products {
	const rows = 6
	g := e.random.Sub("products")
	p := &products{name: name, x: x, dist: d, cov: cov, gram: kernelMatrix(k, x),
		alpha: gaussianMatrix(g.Sub("alpha"), rows, x.N), beta: gaussianMatrix(g.Sub("beta"), rows, x.N)}
	var a, b mat.Dense
	a.Product(p.alpha, p.gram, p.alpha.T())
	b.Product(p.beta, p.gram, p.beta.T())
	p.size = mat.Trace(&a) * mat.Trace(&b)
	return p
}

// tensorProducts returns products for the kernel (xᵀz)^q and points of R^d with nonnegative coordinates, for which
// errors in the signs do not cancel.
func (e *experiment) tensorProducts(q, d int) *products {
	x := randomPoints(e.random.Sub("products", uint64(q)), 10, d, 0.9)
	for i, v := range x.Data {
		x.Data[i] = math.Abs(v)
	}
	p := e.products(fmt.Sprintf("q = %d", q), homogeneous(q), x, e.parts.TensorSketch(homogeneous(q)),
		func(s int) covariance { return tensorSketchCovariance(x, q, s) })
	p.degree = q
	return p
}

// checkProducts adds the measures of approximate matrix products. With s features, the squared error exceeds
// ν²‖A‖_F²‖B‖_F² with probability at most δ. For each number of features in meanFeatures, the mean squared error is
// compared with its expectation, and for a homogeneous kernel also with the bound of Lemma 4.
func (e *experiment) checkProducts(p *products, s int, nu, delta float64, meanFeatures ...int) {
	e.checkProbability(fmt.Sprintf("share above ν²‖A‖_F²‖B‖_F², %s, s = %d, δ = %g", p.name, s, delta),
		p.squaredErrors(e, s), nu*nu*p.size, delta)
	for _, s := range meanFeatures {
		bound := 0.0
		if p.degree > 0 {
			bound = lemma4Bound(p.degree, s) * p.size
		}
		e.checkMean(fmt.Sprintf("mean of ‖ASᵀSBᵀ−ABᵀ‖_F², %s, s = %d", p.name, s), p.squaredErrors(e, s),
			p.expectation(s), bound)
	}
}

// expectation returns E‖ASᵀSBᵀ−ABᵀ‖_F² for s features.
func (p *products) expectation(s int) float64 {
	return expectedWeightedSquare(timesTranspose(p.alpha.T()), timesTranspose(p.beta.T()), p.cov(s))
}

// squaredErrors returns ‖ASᵀSBᵀ−ABᵀ‖_F² = ‖α(ZZᵀ−K)βᵀ‖_F² for e.trials draws of s features.
func (p *products) squaredErrors(e *experiment, s int) []float64 {
	return e.sample(fmt.Sprintf("%s %d", p.name, s), e.trials, func(g rng.Stream) float64 {
		var b mat.Dense
		b.Product(p.alpha, subtract(timesTranspose(featureMatrix(p.dist, p.x, s, g)), p.gram), p.beta.T())
		return frobeniusSquared(&b)
	})
}

// lemma4Bound returns the bound of Lemma 4 on the expectation of the squared error, divided by ‖A‖_F²‖B‖_F².
func lemma4Bound(q, s int) float64 { return (2 + math.Pow(3, float64(q))) / float64(s) }

// lemma4Features returns the number of features s of Lemma 4.
func lemma4Features(q int, nu, delta float64) int {
	return int(SufficientFeatures(q, 1/(2*nu), delta))
}

// checkLemma4 checks approximate matrix products of TensorSketch with the number of features of Lemma 4.
func checkLemma4(e *experiment) {
	const nu = 0.5
	for _, c := range []struct {
		q, d  int
		delta float64
	}{{1, 30, 0.1}, {2, 14, 0.1}, {3, 8, 0.2}} {
		e.checkProducts(e.tensorProducts(c.q, c.d), lemma4Features(c.q, nu, c.delta), nu, c.delta, 32, 15)
	}
	e.checkAnyMatrices()
}

// checkAnyMatrices checks Lemma 4 for matrices A and B that are not made of tensor products. S is computed from the
// hashes.
func (e *experiment) checkAnyMatrices() {
	const q, d, rows, s, nu, delta = 2, 4, 3, 220, 0.5, 0.2
	a, b := gaussianMatrix(e.random.Sub("any A"), rows, d*d), gaussianMatrix(e.random.Sub("any B"), rows, d*d)
	var ab mat.Dense
	ab.Mul(a, b.T())
	squaredErrors := e.sample("any", e.trials, func(g rng.Stream) float64 {
		_, h := e.tensorSketch(homogeneous(q), d, s, g)
		sketchMat := sketchMatrix(h, q, d, s)
		var aSketch, bSketch, product mat.Dense
		aSketch.Mul(a, sketchMat.T())
		bSketch.Mul(b, sketchMat.T())
		product.Mul(&aSketch, bSketch.T())
		product.Sub(&product, &ab)
		return frobeniusSquared(&product)
	})
	e.checkProbability(fmt.Sprintf("share above ν²‖A‖²‖B‖², any A and B, s = %d, δ = %g", s, delta), squaredErrors,
		nu*nu*frobeniusSquared(a)*frobeniusSquared(b), delta)
}

// figureLemma4 draws the squared error of approximate matrix products against s, with its bound.
func figureLemma4(e *experiment) *plots.Figure {
	sizes := []int{16, 32, 64, 128, 256, 512, 1024}
	var series []plots.Series
	for _, q := range []int{2, 3} {
		p := e.tensorProducts(q, map[int]int{2: 14, 3: 8}[q])
		bound := plots.Series{Name: fmt.Sprintf("bound (2+3^{q})/s, q = %d", q)}
		exact := plots.Series{Name: fmt.Sprintf("expectation, q = %d", q)}
		mean := pointSeries(fmt.Sprintf("mean of draws, q = %d", q))
		for _, s := range sizes {
			squaredErrors := p.squaredErrors(e, s)
			addPoint(&bound, s, lemma4Bound(q, s))
			addPoint(&exact, s, p.expectation(s)/p.size)
			addPoint(&mean, s, stat.Mean(squaredErrors, nil)/p.size)
		}
		series = append(series, bound, exact, mean)
	}
	f := plots.Sweep("Lemma 4: the error of a product of sketches", "s", "E‖ASᵀSBᵀ − ABᵀ‖_{F}^{2} / "+
		"‖A‖_{F}^{2}‖B‖_{F}^{2}", nil, series...)
	f.X.Ticks = tickValues(sizes)
	return f
}

// gaussProblem returns a problem with a Gaussian kernel, and the kernel.
func (e *experiment) gaussProblem() (*problem, kernel.Gaussian) {
	k := kernel.Gaussian{Sigma: 2}
	return e.problem(k, 16, 4, 0.8, 3), k
}

// checkTheorem5 checks the guarantee of Theorem 5 for TensorSketch and for Fourier features.
func checkTheorem5(e *experiment) {
	const delta = 0.2
	poly := kernel.Polynomial{Gamma: 0.8, Coef0: 0.3, Degree: 2}
	p := e.problem(poly, 16, 12, 0.8, 2)
	maxNu := 1 / (2 * p.statDim)
	e.checkAtMost("ν²s_λ²+ξ² over ¼ for ν = 1/(2√2·s_λ), ξ = 1/(2√2)",
		[]float64{4 * (maxNu*maxNu/2*p.statDim*p.statDim + 1.0/8)}, 1+1e-12)
	d := e.parts.TensorSketch(poly)
	for _, nu := range []float64{maxNu, maxNu / math.Sqrt2} {
		s := lemma4Features(2, nu, delta)
		e.checkGuarantee(p, fmt.Sprintf("TensorSketch, ν = %.3g", nu), d, s, delta)
	}
	const fewFeatures = 60
	out := p.drawChain(e, "TensorSketch", d, fewFeatures)
	e.checkMean(fmt.Sprintf("mean of ‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_F², TensorSketch, s = %d", fewFeatures), out.squares,
		expectedWeightedSquare(p.inv, p.inv, tensorSketchCovariance(lift(poly, p.x), 2, fewFeatures)),
		p.bound(2, fewFeatures))
	gaussProblem, k := e.gaussProblem()
	oneFeature := expectedWeightedSquare(gaussProblem.inv, gaussProblem.inv, fourierCovariance(k, gaussProblem.x, 1))
	s := int(math.Ceil(4 * oneFeature / delta))
	out = e.checkGuarantee(gaussProblem, "Fourier", e.parts.Fourier(k), s, delta)
	e.checkSpectralBound("Fourier", out)
	e.checkMean(fmt.Sprintf("mean of ‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_F², Fourier, s = %d", s), out.squares, oneFeature/float64(s), 0)
}

// figureTheorem5 draws the squared error of the proof and κ of Fourier features against s.
func figureTheorem5(e *experiment) *plots.Figure {
	const delta = 0.2
	p, k := e.gaussProblem()
	oneFeature := expectedWeightedSquare(p.inv, p.inv, fourierCovariance(k, p.x, 1))
	exact := func(s int) float64 { return oneFeature / float64(s) }
	bound := plots.Series{Name: "κ with probability 1−δ, by Chebyshev"}
	sizes := []int{16, 32, 64, 128, 256, 512, 1024}
	for _, s := range sizes {
		addKappa(&bound, s, exact(s)/delta)
	}
	leftPanel, rightPanel := p.chainFigure(e, e.parts.Fourier(k), sizes, exact, "E‖L⁻¹(ZZᵀ−K)L⁻ᵀ‖_{F}^{2}", delta,
		plots.RefLine{At: 4 * oneFeature / delta, Label: "s of Theorem 5"}, bound)
	return sideBySide("Theorem 5: Gaussian kernel, Fourier features, s_λ = 3, δ = 0.2", leftPanel, rightPanel)
}
