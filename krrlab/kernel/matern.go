package kernel

import (
	"math"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/rng"
)

// Matern32 is k(x, z) = (1 + √3r/σ)·exp(−√3r/σ), r = ‖x−z‖₂, σ > 0 in the units of x.
type Matern32 struct{ Sigma float64 }

// Matern52 is k(x, z) = (1 + √5r/σ + 5r²/(3σ²))·exp(−√5r/σ), r = ‖x−z‖₂, σ > 0 in the units of x.
type Matern52 struct{ Sigma float64 }

func init() {
	register("matern32", Matern32{1})
	register("matern52", Matern52{1})
}

// Title returns the name of the kernel for titles and legends.
func (Matern32) Title() string { return "Matérn 3/2" }

// Scale implements Scaled: σ.
func (k Matern32) Scale() float64 { return k.Sigma }

// WithScale implements Scaled.
func (Matern32) WithScale(sigma float64) Kernel { return Matern32{sigma} }

// Derivative implements Differentiable: −3/(2σ²)·e^−u, u = √3r/σ.
func (k Matern32) Derivative(sq, value float64) float64 {
	return -1.5 / (k.Sigma * k.Sigma) * value / (1 + math.Sqrt(3*sq)/k.Sigma)
}

// Eval implements Kernel.
func (k Matern32) Eval(x, z []float64) float64 {
	u := min(math.Sqrt(3*squaredDistance(x, z))/k.Sigma, maxMaternArgument) // √3r/σ
	return (1 + u) * math.Exp(-u)
}

func (k Matern32) String() string { return "matern32(sigma=" + formatFloat(k.Sigma) + ")" }

// Validate returns an error if σ is out of range.
func (k Matern32) Validate() error { return checkSigma("matern32", k.Sigma) }

// Slope implements Radial and returns 3/(2σ²): the derivative is −3/(2σ²)·e^−u, u = √3r/σ.
func (k Matern32) Slope() float64 { return 3 / (2 * k.Sigma * k.Sigma) }

// Spread implements Mixture: it draws 1/(σ√(χ²(3)/3)), see maternSpread.
func (k Matern32) Spread(g rng.Stream) float64 { return maternSpread(k.Sigma, 3, g) }

// Decreasing implements Decreasing: (1+u)e^−u never increases with u.
func (Matern32) Decreasing() {}

// Profile sets dst = (1+u)·e^−u, u = √3r/σ.
func (k Matern32) Profile(dst, sq []float64) {
	maternProfile64(dst, sq, math.Sqrt(3)/k.Sigma, func(u float64) float64 { return 1 + u })
}

// Profile32 is Profile in float32. It overwrites sq.
func (k Matern32) Profile32(dst []float32, sq []float64) {
	maternExponentials(dst, sq, -math.Sqrt(3)/k.Sigma) // sets sq to −√3r/σ
	for b, minusU := range sq {
		dst[b] *= 1 - float32(minusU)
	}
}

// Title returns the name of the kernel for titles and legends.
func (Matern52) Title() string { return "Matérn 5/2" }

// Scale implements Scaled: σ.
func (k Matern52) Scale() float64 { return k.Sigma }

// WithScale implements Scaled.
func (Matern52) WithScale(sigma float64) Kernel { return Matern52{sigma} }

// Derivative implements Differentiable: −5/(6σ²)·(1+u)e^−u, u = √5r/σ.
func (k Matern52) Derivative(sq, value float64) float64 {
	u := math.Sqrt(5*sq) / k.Sigma
	return -5.0 / 6 / (k.Sigma * k.Sigma) * value * (1 + u) / (1 + u + u*u/3)
}

// Eval implements Kernel.
func (k Matern52) Eval(x, z []float64) float64 {
	u := min(math.Sqrt(5*squaredDistance(x, z))/k.Sigma, maxMaternArgument) // √5r/σ, so that 5r²/(3σ²) = u²/3
	return (1 + u + u*u/3) * math.Exp(-u)
}

func (k Matern52) String() string { return "matern52(sigma=" + formatFloat(k.Sigma) + ")" }

// Validate returns an error if σ is out of range.
func (k Matern52) Validate() error { return checkSigma("matern52", k.Sigma) }

// Slope implements Radial and returns 5/(6σ²): the derivative is −5/(6σ²)·(1+u)e^−u, u = √5r/σ.
func (k Matern52) Slope() float64 { return 5 / (6 * k.Sigma * k.Sigma) }

// Spread implements Mixture: it draws 1/(σ√(χ²(5)/5)), see maternSpread.
func (k Matern52) Spread(g rng.Stream) float64 { return maternSpread(k.Sigma, 5, g) }

// Decreasing implements Decreasing: (1+u+u²/3)e^−u never increases with u.
func (Matern52) Decreasing() {}

// Profile sets dst = (1+u+u²/3)·e^−u, u = √5r/σ.
func (k Matern52) Profile(dst, sq []float64) {
	maternProfile64(dst, sq, math.Sqrt(5)/k.Sigma, func(u float64) float64 { return 1 + u + u*u/3 })
}

// Profile32 is Profile in float32. It overwrites sq.
func (k Matern52) Profile32(dst []float32, sq []float64) {
	maternExponentials(dst, sq, -math.Sqrt(5)/k.Sigma) // sets sq to −√5r/σ
	for b, v := range sq {
		minusU := float32(v)
		dst[b] *= 1 - minusU + minusU*minusU/3
	}
}

// SpectralDensity implements fourier.Density: S(f) = c_d (5/σ² + 4π²f²)^(−5/2−d/2) for points in R^d and a frequency f
// in cycles per unit of the points, with c_d from Rasmussen and Williams 2006, equation 4.15 (see the package comment).
func (k Matern52) SpectralDensity(d int, f float64) float64 {
	return k.densityFactor(d) * math.Pow(5/(k.Sigma*k.Sigma)+4*math.Pi*math.Pi*f*f, -(5+float64(d))/2)
}

// densityFactor returns c_d = 2^d π^(d/2) Γ(5/2+d/2) 5^(5/2) / (Γ(5/2) σ⁵).
func (k Matern52) densityFactor(d int) float64 {
	halfDim := float64(d) / 2
	return math.Pow(4*math.Pi, halfDim) * math.Gamma(2.5+halfDim) / math.Gamma(2.5) *
		math.Pow(5, 2.5) / math.Pow(k.Sigma, 5)
}

// SpectralTail implements fourier.Density: it returns an upper bound of ∫_f^∞ S(r)·r^(size−1) dr for points in R^d,
// from S(r) ≤ c_d (2πr)^(−5−d).
func (k Matern52) SpectralTail(d, size int, f float64) float64 {
	power := float64(5 + d - size)
	return k.densityFactor(d) * math.Pow(2*math.Pi, -5-float64(d)) * math.Pow(f, -power) / power
}

// Envelope implements fourier.Density: k(x, z) ≤ amplitude·exp(−‖x−z‖/length), because (1+u+u²/3)e^(−u/5) with u =
// √5r/σ is at most 6.2, near u = 8.4.
func (k Matern52) Envelope() (amplitude, length float64) { return 6.2, k.Sigma / (0.8 * math.Sqrt(5)) }

// maxMaternArgument replaces every larger u in a polynomial of u times e^−u. e^−maxMaternArgument is 0 in float64, so
// the product is 0 even if the polynomial of the original u would overflow.
const maxMaternArgument = 1000

// maternSpread draws the random scale (Mixture.Spread) of a Matérn kernel of order ν = degreesOfFreedom/2. Its spectral
// density (Rasmussen and Williams 2006, equation 4.15, here in angular frequency) is
//
//	p(w) ∝ (2ν/σ² + ‖w‖²)^(−ν−d/2) ∝ (1 + ‖σw‖²/(2ν))^(−(2ν+d)/2).
//
// So σw has a multivariate Student t distribution with 2ν degrees of freedom: σw = ξ/√(χ²/2ν), ξ ∼ N(0, I), with one χ²
// ∼ χ²(2ν) for all coordinates.
func maternSpread(sigma, degreesOfFreedom float64, g rng.Stream) float64 {
	return 1 / (sigma * math.Sqrt(g.ChiSquare(0, degreesOfFreedom)/degreesOfFreedom))
}

// maternProfile64 sets dst = p(u)·e^−u, u = c·√sq.
func maternProfile64(dst, sq []float64, c float64, p func(u float64) float64) {
	var u [64]float64 // arguments of one block of entries, on the stack
	for len(sq) > 0 {
		n := min(len(sq), len(u))
		for b, r2 := range sq[:n] {
			u[b] = min(c*math.Sqrt(r2), maxMaternArgument)
		}
		simd.Exp64(dst[:n], u[:n], -1, flush64)
		for b, v := range u[:n] {
			dst[b] *= p(v)
		}
		dst, sq = dst[n:], sq[n:]
	}
}

// maternExponentials sets sq[b] = a, where a = c·√sq[b] rounded to float32, and dst[b] = e^a.
func maternExponentials(dst []float32, sq []float64, c float64) {
	dst = dst[:len(sq)]
	for b, r2 := range sq {
		dst[b] = exponent32(c * math.Sqrt(r2))
		sq[b] = float64(dst[b])
	}
	simd.Exp32(dst, dst)
}
