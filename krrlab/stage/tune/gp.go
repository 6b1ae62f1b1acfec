package tune

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// at is a point of the search: log σ and log λ.
type at [2]float64

// process is a Gaussian process over (log σ, log λ), fitted to some values:
//
//	y = m(x) + β + s·(g(x) + ε),  cov g = Matérn 5/2 of Σ_k (x_k−z_k)²/ℓ_k²,  var ε = ν.
type process struct {
	x     []at
	prior *process // whose mean is m; nil: m = 0
	ell   at
	beta  float64
	scale float64 // s
	chol  mat.Cholesky
	w     []float64 // R⁻¹(y−m−β), R = corr+νI
	means map[at]float64
	sds   map[at]float64 // both of where they were asked for: every step of a search asks for the same places
}

// Length scales and noise that fit tries, long ones first: the errors change by orders of magnitude in log λ and by
// parts in log σ.
var (
	lengths = [2][]float64{{3, 1.5, 0.7}, {12, 5, 2}}
	noises  = []float64{1e-6, 1e-4, 1e-2}
)

// What is expected of s before there are values, as if from assumed values.
const (
	spread  = 0.3 // of the error itself
	drift   = 0.1 // of what a level differs by from the one before
	assumed = 3
)

// fit returns the process of most likelihood. prior is the process of the level before, nil for none, whose mean is
// then m; y has at least one value.
func fit(x []at, y []float64, prior *process) *process {
	d := slices.Clone(y)
	ells, expected := lengths, spread
	if prior != nil {
		for i := range d {
			d[i] -= prior.mean(x[i])
		}
		ells, expected = [2][]float64{lengths[0][:2], lengths[1][:2]}, drift
	}
	var best *process
	likely := math.Inf(-1)
	for _, l0 := range ells[0] {
		for _, l1 := range ells[1] {
			for _, noise := range noises {
				p := &process{x: x, prior: prior, ell: at{l0, l1}, means: map[at]float64{}, sds: map[at]float64{}}
				if v, ok := p.solve(d, noise, expected); ok && v > likely {
					best, likely = p, v
				}
			}
		}
	}
	return best
}

// solve conditions the process on the values and returns their logarithmic likelihood, up to a constant.
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
	p.w = rd.RawVector().Data
	m := float64(n + assumed)
	ss := (mat.Dot(y, rd) + assumed*expected*expected) / m // the mode of an inverse gamma law
	p.scale = math.Sqrt(ss)
	return -0.5*m*math.Log(ss) - 0.5*p.chol.LogDet(), true
}

// corr is Matérn 5/2 of unit variance.
func (p *process) corr(a, b at) float64 {
	u, v := (a[0]-b[0])/p.ell[0], (a[1]-b[1])/p.ell[1]
	r := math.Sqrt(5 * (u*u + v*v))
	return (1 + r + r*r/3) * math.Exp(-r)
}

// mean returns E y(x).
func (p *process) mean(x at) float64 {
	if m, ok := p.means[x]; ok {
		return m
	}
	m := p.beta
	if p.prior != nil {
		m += p.prior.mean(x)
	}
	for i, z := range p.x {
		m += p.w[i] * p.corr(x, z)
	}
	p.means[x] = m
	return m
}

// predict returns the mean of y(x) without noise, and its standard deviation.
func (p *process) predict(x at) (mean, sd float64) {
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

// improvement returns E max(0, best−y(x)), or 0 where that is at most a floor: it rises with the standard deviation,
// which is at most s and takes most of the work.
func (p *process) improvement(x at, best, floor float64) float64 {
	if improvement(best-p.mean(x), p.scale) <= floor {
		return 0
	}
	mean, sd := p.predict(x)
	return improvement(best-mean, sd)
}

// improvement returns E max(0, v) of a normal variable.
func improvement(mean, sd float64) float64 {
	if sd <= 0 {
		return max(0, mean)
	}
	u := mean / sd
	return mean*0.5*math.Erfc(-u/math.Sqrt2) + sd*math.Exp(-u*u/2)/math.Sqrt(2*math.Pi)
}
