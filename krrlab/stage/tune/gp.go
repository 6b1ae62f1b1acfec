package tune

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// gridPoint is a point of the search: the logarithms of the scale and of λ.
type gridPoint [2]float64

// gaussianProcess is a Gaussian process over x = (log σ, log λ), conditioned on some values y:
//
//	y = m(x) + β + s·(g(x) + ε),
//
// where m is the prior mean, β and s are constants, g has the Matérn 5/2 covariance of the distance
// √(Σ_k (x_k−z_k)²/ℓ_k²) of two points x and z, and ε is noise of variance ν.
type gaussianProcess struct {
	x        []gridPoint      // points at which values are known
	prior    *gaussianProcess // process whose posterior mean is m; nil: m = 0
	lengths  gridPoint        // length scales ℓ
	beta     float64          // constant β
	scale    float64          // standard deviation s
	cholesky mat.Cholesky     // Cholesky factor of R, the correlations of the points x plus νI
	weights  []float64        // weights R⁻¹(y−m−β) of the correlations with the points x in the posterior mean

	// Every step of a search evaluates the same points. The posterior moments are therefore cached.
	means      map[gridPoint]float64 // posterior means
	deviations map[gridPoint]float64 // posterior standard deviations
}

// lengths and processNoises are the candidates for ℓ and ν. The length scales for log σ, and those for log λ, are in
// descending order. Those for log λ are larger, because λ is searched over many more orders of magnitude than σ.
var (
	lengths       = [2][]float64{{3, 1.5, 0.7}, {12, 5, 2}}
	processNoises = []float64{1e-6, 1e-4, 1e-2}
)

// The prior of s² is the inverse gamma distribution with the shape priorCount/2 − 1 and the scale priorCount·sd²/2, as
// if priorCount values with the standard deviation sd had been observed. sd is one of the following numbers. A larger
// priorCount makes the fit depend less on few values.
const (
	priorErrorSD = 0.3 // prior standard deviation of the log error, without a previous level
	priorDriftSD = 0.1 // prior standard deviation of the change of the log error from the previous level
	priorCount   = 3   // number of values that the prior counts for
)

// fitProcess returns the process of maximum likelihood for the values y at the points x, at least one. If prior, the
// process of the previous level, is not nil, its posterior mean is the prior mean m of the new process. fitProcess
// returns nil if the covariance matrix is not positive definite for any candidate of ℓ and ν.
func fitProcess(x []gridPoint, y []float64, prior *gaussianProcess) *gaussianProcess {
	residuals := slices.Clone(y)
	lengthGrid, priorSD := lengths, priorErrorSD
	if prior != nil {
		for i := range residuals {
			residuals[i] -= prior.mean(x[i])
		}
		lengthGrid, priorSD = [2][]float64{lengths[0][:2], lengths[1][:2]}, priorDriftSD
	}
	var best *gaussianProcess
	maxLikelihood := math.Inf(-1)
	for _, length0 := range lengthGrid[0] {
		for _, length1 := range lengthGrid[1] {
			for _, noise := range processNoises {
				p := &gaussianProcess{x: x, prior: prior, lengths: gridPoint{length0, length1},
					means: map[gridPoint]float64{}, deviations: map[gridPoint]float64{}}
				if likelihood, ok := p.condition(residuals, noise, priorSD); ok && likelihood > maxLikelihood {
					best, maxLikelihood = p, likelihood
				}
			}
		}
	}
	return best
}

// condition conditions the process on the differences y−m at its points. It returns the logarithm of their likelihood
// times the prior density of s², maximized over β and s², up to a constant. ok is false if the covariance matrix is not
// positive definite.
func (p *gaussianProcess) condition(differences []float64, noise, priorSD float64) (likelihood float64, ok bool) {
	n := len(differences)
	noisyCorrelations := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			entry := p.correlation(p.x[i], p.x[j])
			if i == j {
				entry += noise
			}
			noisyCorrelations.SetSym(i, j, entry)
		}
	}
	if !p.cholesky.Factorize(noisyCorrelations) {
		return 0, false
	}
	ones, solution := mat.NewVecDense(n, slices.Repeat([]float64{1}, n)), mat.NewVecDense(n, nil)
	centered := mat.NewVecDense(n, slices.Clone(differences))
	if p.cholesky.SolveVecTo(solution, ones) != nil {
		return 0, false
	}
	p.beta = mat.Dot(solution, centered) / mat.Dot(solution, ones)
	centered.AddScaledVec(centered, -p.beta, ones)
	if p.cholesky.SolveVecTo(solution, centered) != nil {
		return 0, false
	}
	p.weights = solution.RawVector().Data
	count := float64(n + priorCount)
	squaredScale := (mat.Dot(centered, solution) + priorCount*priorSD*priorSD) / count // posterior mode of s²
	p.scale = math.Sqrt(squaredScale)
	return -0.5*count*math.Log(squaredScale) - 0.5*p.cholesky.LogDet(), true
}

// correlation returns the Matérn 5/2 correlation of g at two points.
func (p *gaussianProcess) correlation(a, b gridPoint) float64 {
	u, v := (a[0]-b[0])/p.lengths[0], (a[1]-b[1])/p.lengths[1]
	r := math.Sqrt(5 * (u*u + v*v))
	return (1 + r + r*r/3) * math.Exp(-r)
}

// mean returns the posterior mean E y(x).
func (p *gaussianProcess) mean(x gridPoint) float64 {
	if mean, ok := p.means[x]; ok {
		return mean
	}
	mean := p.beta
	if p.prior != nil {
		mean += p.prior.mean(x)
	}
	for i, z := range p.x {
		mean += p.weights[i] * p.correlation(x, z)
	}
	p.means[x] = mean
	return mean
}

// predict returns the posterior mean and standard deviation of y(x) without noise.
func (p *gaussianProcess) predict(x gridPoint) (mean, sd float64) {
	mean = p.mean(x)
	if sd, ok := p.deviations[x]; ok {
		return mean, sd
	}
	correlations := make([]float64, len(p.x))
	for i, z := range p.x {
		correlations[i] = p.correlation(x, z)
	}
	factor := p.cholesky.RawU().(*mat.TriDense).RawTriangular()
	blas64.Trsv(blas.Trans, factor, blas64.Vector{N: len(correlations), Inc: 1, Data: correlations}) // U⁻ᵀr, R = UᵀU
	p.deviations[x] = p.scale * math.Sqrt(max(0, 1-floats.Dot(correlations, correlations)))
	return mean, p.deviations[x]
}

// improvement returns the expected improvement E max(0, best−y(x)). If the expected improvement is at most floor, it
// may return 0. The standard deviation of y(x) is expensive to compute, but at most s. It is therefore computed only if
// the standard deviation s would give an improvement of more than floor.
func (p *gaussianProcess) improvement(x gridPoint, best, floor float64) float64 {
	if expectedPositivePart(best-p.mean(x), p.scale) <= floor {
		return 0
	}
	mean, sd := p.predict(x)
	return expectedPositivePart(best-mean, sd)
}

// expectedPositivePart returns E max(0, v) for a normal variable v.
func expectedPositivePart(mean, sd float64) float64 {
	if sd <= 0 {
		return max(0, mean)
	}
	u := mean / sd
	return mean*0.5*math.Erfc(-u/math.Sqrt2) + sd*math.Exp(-u*u/2)/math.Sqrt(2*math.Pi)
}
