package kernel

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/tree"
)

// Radial is a kernel of r² = ‖x−z‖₂², k(x, z) = g(r²), built-in or user-defined. Its tiles are formed by
// BLAS and row by row, where Eval takes pair by pair. A faster way to values in float32, such as simd.Exp32,
// it can have as a method Profile32(dst []float32, sq []float64), which sets dst[i] to g(sq[i]), to 0 where
// that is subnormal, and may overwrite sq.
type Radial interface {
	Kernel
	// Profile sets dst[i] = g(sq[i]) for all sq[i] ≥ 0. The slices have one length and may be the same
	// one. It must allow calls from several goroutines.
	Profile(dst, sq []float64)
	// Slope returns |g′(0)|, or +Inf where that is infinite or not known. Certain bounds rest on it: K is
	// formed from inner products where it shows that their rounding does not matter, and else from
	// differences, some ten times slower. It bounds |g′| everywhere: a positive semi-definite
	// g(r²) is ∫cos(rt)dμ(t), whose derivative by r is at most r∫t²dμ(t) = 2r|g′(0)|.
	Slope() float64
}

// Mixture is a Radial that is a scale mixture of Gaussians,
//
//	k(x, z) = g(0)·E exp(−s²‖x−z‖²/2),
//
// as each is that is positive semi-definite in all dimensions (I. J. Schoenberg, Ann. of Math. 39,
// 1938). So its spectral measure is the law of s·ξ, ξ ∼ N(0, I), and it has Fourier features.
type Mixture interface {
	Radial
	// Spread draws s, a function of the stream, which is its own.
	Spread(g rng.Stream) float64
}

// Spectral is a kernel of x−z with a spectral measure: k(x, z) = k(x, x)·E cos wᵀ(x−z). It has Fourier
// features.
type Spectral interface {
	Kernel
	// Frequency draws w, of the dimension of the points, a function of the stream, which is its own.
	Frequency(w []float64, g rng.Stream)
}

var (
	_ Mixture   = Gaussian{}
	_ Mixture   = Matern32{}
	_ Mixture   = Matern52{}
	_ profile32 = Matern32{}
	_ profile32 = Matern52{}
	_ Spectral  = Laplacian{}
)

// profile is a kernel of one number of two points.
type profile interface {
	Kernel
	Profile(dst, s []float64)
}

type profile32 interface {
	Profile32(dst []float32, s []float64)
}

// scalar is the number of two points that a kernel is a function of.
type scalar int

const (
	pairs     scalar = iota // none: nothing but Eval is known
	squares                 // ‖x−z‖₂²
	absolutes               // ‖x−z‖₁
	products                // xᵀz
)

func scalarOf(k Kernel) scalar {
	switch k.(type) {
	case Radial:
		return squares
	case Laplacian:
		return absolutes
	case Polynomial:
		return products
	}
	return pairs
}

// atZero returns g(0).
func atZero(k Radial) float64 {
	var v [1]float64
	k.Profile(v[:], v[:])
	return v[0]
}

// Slope returns 1/(2σ²).
func (k Gaussian) Slope() float64 { return 1 / (2 * k.Sigma * k.Sigma) }

// Slope returns 3/(2σ²): the derivative is −3/(2σ²)·e^−u, u = √3r/σ.
func (k Matern32) Slope() float64 { return 3 / (2 * k.Sigma * k.Sigma) }

// Slope returns 5/(6σ²): the derivative is −5/(6σ²)·(1+u)e^−u, u = √5r/σ.
func (k Matern52) Slope() float64 { return 5 / (6 * k.Sigma * k.Sigma) }

// Spread returns 1/σ: exp(−‖δ‖²/2σ²) is the characteristic function of N(0, I/σ²).
func (k Gaussian) Spread(rng.Stream) float64 { return 1 / k.Sigma }

// Spread draws 1/(σ√(χ²(3)/3)): see matern.
func (k Matern32) Spread(g rng.Stream) float64 { return matern(k.Sigma, 3, g) }

// Spread draws 1/(σ√(χ²(5)/5)): see matern.
func (k Matern52) Spread(g rng.Stream) float64 { return matern(k.Sigma, 5, g) }

// matern draws the spread of a Matérn kernel of order ν: its spectral density (Rasmussen and Williams
// 2006, equation 4.15, here in angular frequency) is
//
//	p(w) ∝ (2ν/σ² + ‖w‖²)^(−ν−d/2) ∝ (1 + ‖σw‖²/(2ν))^(−(2ν+d)/2),
//
// the density of σw multivariate Student t with 2ν degrees of freedom: σw = ξ/√(χ²/2ν), ξ ∼ N(0, I),
// one χ² ∼ χ²(2ν) for all coordinates.
func matern(sigma, freedom float64, g rng.Stream) float64 {
	return 1 / (sigma * math.Sqrt(g.ChiSquare(0, freedom)/freedom))
}

// Frequency draws independent Cauchy variables of scale 1/σ: exp(−‖δ‖₁/σ) = Π_c exp(−|δ_c|/σ), each
// factor the characteristic function of one.
func (k Laplacian) Frequency(w []float64, g rng.Stream) {
	g.Float64s(w, 0)
	for c, u := range w {
		w[c] = cauchy(u) / k.Sigma
	}
}

// cauchy returns the Cauchy quantile tan π(u−½), without cancellation in the tails.
func cauchy(u float64) float64 {
	if u < 0.5 {
		return -1 / math.Tan(math.Pi*u)
	}
	return 1 / math.Tan(math.Pi*(1-u))
}

// checked is the number of pairs of points that Check looks at.
const checked = 64

// Check tests the claims of a user-defined Radial on some pairs of the points: that Profile is
// Eval, and that k(x, x) is the largest value; that g does not fall from 0 faster than Slope allows; and that a
// Decreasing one does not rise at distances like these. Of a kernel that is evaluated by EvalTile it compares that with
// Eval. Of a Precomputed it looks whether K is there and the points are rows of it. Other kernels it passes.
func Check(k Kernel, x points.Points) error {
	if p, ok := k.(*Precomputed); ok {
		if p.k == nil {
			return fmt.Errorf("kernel: a model of a precomputed K holds no K: it can only predict, from K(test, "+
				"train) with %d numbers per row", p.n)
		}
		return p.CheckRows(x)
	}
	if t, ok := k.(tiler); ok && ByPairs(k) {
		return checkTile(k, t, x)
	}
	r, ok := k.(Radial)
	if !ok || BuiltIn(k) {
		return nil
	}
	one, slope := atZero(r), r.Slope()
	if !(one > 0) || math.IsInf(one, 1) || !(slope > 0) {
		return fmt.Errorf("kernel: %v has g(0) = %v and Slope() = %v: want positive numbers, or +Inf for a slope "+
			"that is not known", k, one, slope)
	}
	rounding := 1e-9 * one
	for t := range 10 { // |g(0)−g(r²)| ≤ |g′(0)|r²
		g := []float64{math.Ldexp(one/slope, -2*t)}
		sq := g[0]
		if r.Profile(g, g); one-g[0] > slope*sq+rounding {
			return fmt.Errorf("kernel: %v falls by %.4g from r² = 0 to %g, more than Slope() = %g allows: want "+
				"|g′(0)|, or +Inf where it is not known", k, one-g[0], sq, slope)
		}
	}
	n, d := x.Dims()
	var farthest float64 // ‖x−z‖² of the pairs
	a, b := make([]float64, d), make([]float64, d)
	for p := range min(n, checked) {
		i := p * n / min(n, checked)
		j := (i + 1 + p*p) % n // near and far in the order
		x.RowTo(a, i)
		x.RowTo(b, j)
		g := []float64{dist2(a, b)}
		sq, eval := g[0], k.Eval(a, b)
		switch r.Profile(g, g); {
		case !(math.Abs(g[0]-eval) <= rounding): // NaN too
			return fmt.Errorf("kernel: %v of points %d and %d, at r² = %g, is %v by Profile and %v by Eval: want "+
				"one kernel", k, i, j, sq, g[0], eval)
		case math.Abs(g[0]) > one+rounding:
			return fmt.Errorf("kernel: %v of points %d and %d is %v, above k(x, x) = %v: it is not positive "+
				"semi-definite", k, i, j, g[0], one)
		}
		farthest = max(farthest, sq)
	}
	if d, ok := k.(Decreasing); ok {
		return checkDecreasing(d, farthest)
	}
	return nil
}

// checkDecreasing looks whether g is nowhere negative and never rises at 256 places up to twice the distance that was
// seen.
func checkDecreasing(k Decreasing, farthest float64) error {
	var at, g [256]float64
	for i := range at {
		at[i] = 4 * farthest * math.Pow(float64(i)/float64(len(at)-1), 2)
	}
	k.Profile(g[:], at[:])
	for i, v := range g {
		if !(v >= 0) || i > 0 && v > g[i-1]*(1+1e-9) {
			return fmt.Errorf("kernel: %v says that it decreases, and is %v at r² = %g after %v: leave the method "+
				"Decreasing out", k, v, at[i], g[max(i-1, 0)])
		}
	}
	return nil
}

// checkTile compares EvalTile with Eval on a tile that is not square.
func checkTile(k Kernel, t tiler, p points.Points) error {
	n, d := p.Dims()
	nx, nz := min(n, 5), min(n, 4)
	x, z, tile := make([]float64, nx*d), make([]float64, nz*d), make([]float64, nx*nz)
	p.Slice(0, nx).Panel64To(x, d)
	p.Slice(n-nz, n).Panel64To(z, d)
	for i := range tile {
		tile[i] = math.NaN()
	}
	t.EvalTile(tile, x, z, nx, nz)
	var most float64
	evals := make([]float64, nx*nz)
	for i := range evals {
		evals[i] = k.Eval(x[i/nz*d:][:d], z[i%nz*d:][:d])
		most = max(most, math.Abs(evals[i]))
	}
	for i, v := range evals {
		if by := tile[i]; by != v && !(math.Abs(by-v) <= 1e-9*most) && !(math.IsNaN(by) && math.IsNaN(v)) {
			return fmt.Errorf("kernel: %v of points %d and %d is %v by EvalTile and %v by Eval: want one kernel", k,
				i/nz, n-nz+i%nz, by, v)
		}
	}
	return nil
}

// Decreasing is a Radial with 0 ≤ g(t) ≤ g(s) for all s ≤ t, so that K has nothing where the points are far apart. A
// kernel that says so and does not is noticed only by the pairs that Check looks at.
type Decreasing interface {
	Radial
	Decreasing()
}

// Decreasing says that exp(−r²/(2σ²)) never rises.
func (Gaussian) Decreasing() {}

// Decreasing says that (1+u)e^−u never rises.
func (Matern32) Decreasing() {}

// Decreasing says that (1+u+u²/3)e^−u never rises.
func (Matern52) Decreasing() {}

// Beyond returns what k is at most for points whose distance is at least the argument, and which distance that is. It
// is certain for the Laplacian and the Decreasing kernels of this package; nil for those that are not known to
// decrease.
func Beyond(k Kernel) (most func(distance float64) float64, by tree.Metric) {
	p, ok := k.(profile)
	switch k.(type) {
	case Laplacian:
		by = tree.Absolutes
	case Decreasing:
	default:
		ok = false
	}
	if !ok {
		return nil, by
	}
	return func(distance float64) float64 {
		v := []float64{distance}
		p.Profile(v, v)
		return v[0]*(1+0x1p-40) + 0x1p-200 // rounding, and what is below and stored as 0
	}, by
}
