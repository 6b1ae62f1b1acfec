package tune

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// gridPoint is a point of the search: log σ and log λ.
type gridPoint [2]float64

// process is a Gaussian process over (log σ, log λ), conditioned on some values:
//
//	y = m(x) + β + s·(g(x) + ε),  cov g = Matérn 5/2 of Σ_k (x_k−z_k)²/ℓ_k²,  var ε = ν.
type process struct {
	x       []gridPoint
	prior   *process // process with the mean m; nil: m = 0
	lengths gridPoint
	beta    float64
	scale   float64 // s
	chol    mat.Cholesky
	weights []float64 // R⁻¹(y−m−β), R = corr+νI

	// Every step of a search asks for the same points, so that both moments are cached.
	means map[gridPoint]float64
	sds   map[gridPoint]float64
}

// processLengths and processNoises are the candidates for ℓ and ν, long length scales first. The error changes by
// orders of magnitude with log λ, but only by fractions of itself with log σ.
var (
	lengths       = [2][]float64{{3, 1.5, 0.7}, {12, 5, 2}}
	processNoises = []float64{1e-6, 1e-4, 1e-2}
)

// The prior of s² is an inverse gamma distribution, as if priorCount values with the standard deviation below had been
// observed. A larger priorCount makes the fit depend less on few values.
const (
	priorErrorSD = 0.3 // prior standard deviation of the log error, without a previous level
	priorDriftSD = 0.1 // prior standard deviation of the change of the log error from the previous level
	priorCount   = 3
)

// fitProcess returns the process of maximum likelihood for the values y at x, at least one. If prior, the process of
// the previous level, is not nil, its mean is the mean m of the new process.
func fitProcess(x []gridPoint, y []float64, prior *process) *process {
	residuals := slices.Clone(y)
	lengthGrid, expected := lengths, priorErrorSD
	if prior != nil {
		for i := range residuals {
			residuals[i] -= prior.mean(x[i])
		}
		lengthGrid, expected = [2][]float64{lengths[0][:2], lengths[1][:2]}, priorDriftSD
	}
	var best *process
	maxLikelihood := math.Inf(-1)
	for _, l0 := range lengthGrid[0] {
		for _, l1 := range lengthGrid[1] {
			for _, noise := range processNoises {
				p := &process{x: x, prior: prior, lengths: gridPoint{l0, l1}, means: map[gridPoint]float64{},
					sds: map[gridPoint]float64{}}
				if v, ok := p.solve(residuals, noise, expected); ok && v > maxLikelihood {
					best, maxLikelihood = p, v
				}
			}
		}
	}
	return best
}

// solve conditions the process on the values and returns their log likelihood, up to a constant. It returns false if
// the covariance matrix is not positive definite.
func (p *process) solve(d []float64, noise, expected float64) (likelihood float64, ok bool) {
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
	m := float64(n + priorCount)
	ss := (mat.Dot(y, rd) + priorCount*expected*expected) / m // the mode of the inverse gamma posterior
	p.scale = math.Sqrt(ss)
	return -0.5*m*math.Log(ss) - 0.5*p.chol.LogDet(), true
}

// corr is the Matérn 5/2 correlation.
func (p *process) corr(a, b gridPoint) float64 {
	u, v := (a[0]-b[0])/p.lengths[0], (a[1]-b[1])/p.lengths[1]
	r := math.Sqrt(5 * (u*u + v*v))
	return (1 + r + r*r/3) * math.Exp(-r)
}

// mean returns the posterior mean E y(x).
func (p *process) mean(x gridPoint) float64 {
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
func (p *process) predict(x gridPoint) (mean, sd float64) {
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

// improvement returns E max(0, best−y(x)), or 0 if it is at most floor. The standard deviation is at most s and takes
// most of the work, so that it is computed only if the improvement for a standard deviation of s exceeds floor.
func (p *process) improvement(x gridPoint, best, floor float64) float64 {
	if improvement(best-p.mean(x), p.scale) <= floor {
		return 0
	}
	mean, sd := p.predict(x)
	return improvement(best-mean, sd)
}

// improvement returns E max(0, v) of a normal variable v.
func improvement(mean, sd float64) float64 {
	if sd <= 0 {
		return max(0, mean)
	}
	u := mean / sd
	return mean*0.5*math.Erfc(-u/math.Sqrt2) + sd*math.Exp(-u*u/2)/math.Sqrt(2*math.Pi)
}
