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

// gaussianProcess is a Gaussian process over (log σ, log λ), conditioned on some values:
//
//	y = m(x) + β + s·(g(x) + ε),  cov g = Matérn 5/2 of Σ_k (x_k−z_k)²/ℓ_k²,  var ε = ν.
type gaussianProcess struct {
	x       []gridPoint
	prior   *gaussianProcess // process with the mean m; nil: m = 0
	lengths gridPoint        // ℓ
	beta    float64          // β
	scale   float64          // s
	chol    mat.Cholesky     // factor of R = corr+νI, where corr are the correlations of the points
	weights []float64        // R⁻¹(y−m−β)

	// Every step of a search evaluates the same points. Both moments are therefore cached.
	means map[gridPoint]float64 // posterior means
	sds   map[gridPoint]float64 // posterior standard deviations
}

// lengths and processNoises are the candidates for ℓ and ν. The length scales for log σ and for log λ descend. The
// error changes by orders of magnitude with log λ, but only by fractions of itself with log σ.
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
	priorCount   = 3
)

// fitProcess returns the process of maximum likelihood for the values y at x, at least one. If prior, the process of
// the previous level, is not nil, its mean is the mean m of the new process. fitProcess returns nil if the covariance
// matrix is not positive definite for any candidate.
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
	for _, l0 := range lengthGrid[0] {
		for _, l1 := range lengthGrid[1] {
			for _, noise := range processNoises {
				p := &gaussianProcess{x: x, prior: prior, lengths: gridPoint{l0, l1}, means: map[gridPoint]float64{},
					sds: map[gridPoint]float64{}}
				if v, ok := p.condition(residuals, noise, priorSD); ok && v > maxLikelihood {
					best, maxLikelihood = p, v
				}
			}
		}
	}
	return best
}

// condition conditions the process on the values d = y−m. It returns the logarithm of their likelihood times the prior
// of s², maximized over β and s², up to a constant. It returns false if the covariance matrix is not positive definite.
func (p *gaussianProcess) condition(d []float64, noise, priorSD float64) (likelihood float64, ok bool) {
	n := len(d)
	r := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			v := p.corr(p.x[i], p.x[j])
			if i == j {
				v += noise
			}
			r.SetSym(i, j, v)
		}
	}
	if !p.chol.Factorize(r) {
		return 0, false
	}
	one, rd := mat.NewVecDense(n, slices.Repeat([]float64{1}, n)), mat.NewVecDense(n, nil)
	y := mat.NewVecDense(n, slices.Clone(d))
	if p.chol.SolveVecTo(rd, one) != nil {
		return 0, false
	}
	p.beta = mat.Dot(rd, y) / mat.Dot(rd, one)
	y.AddScaledVec(y, -p.beta, one)
	if p.chol.SolveVecTo(rd, y) != nil {
		return 0, false
	}
	p.weights = rd.RawVector().Data
	count := float64(n + priorCount)
	scale2 := (mat.Dot(y, rd) + priorCount*priorSD*priorSD) / count // the mode of the posterior of s²
	p.scale = math.Sqrt(scale2)
	return -0.5*count*math.Log(scale2) - 0.5*p.chol.LogDet(), true
}

// corr returns the Matérn 5/2 correlation of g at two points.
func (p *gaussianProcess) corr(a, b gridPoint) float64 {
	u, v := (a[0]-b[0])/p.lengths[0], (a[1]-b[1])/p.lengths[1]
	r := math.Sqrt(5 * (u*u + v*v))
	return (1 + r + r*r/3) * math.Exp(-r)
}

// mean returns the posterior mean E y(x).
func (p *gaussianProcess) mean(x gridPoint) float64 {
	if m, ok := p.means[x]; ok {
		return m
	}
	m := p.beta
	if p.prior != nil {
		m += p.prior.mean(x)
	}
	for i, z := range p.x {
		m += p.weights[i] * p.corr(x, z)
	}
	p.means[x] = m
	return m
}

// predict returns the posterior mean and standard deviation of y(x) without noise.
func (p *gaussianProcess) predict(x gridPoint) (mean, sd float64) {
	mean = p.mean(x)
	if sd, ok := p.sds[x]; ok {
		return mean, sd
	}
	r := make([]float64, len(p.x))
	for i, z := range p.x {
		r[i] = p.corr(x, z)
	}
	tri := p.chol.RawU().(*mat.TriDense).RawTriangular()
	blas64.Trsv(blas.Trans, tri, blas64.Vector{N: len(r), Inc: 1, Data: r}) // U⁻ᵀr, R = UᵀU
	p.sds[x] = p.scale * math.Sqrt(max(0, 1-floats.Dot(r, r)))
	return mean, p.sds[x]
}

// improvement returns the expected improvement E max(0, best−y(x)). If the expected improvement is at most floor, it
// may return 0. The standard deviation is at most s and expensive to compute. It is therefore computed only if a
// standard deviation of s would give more than floor.
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
