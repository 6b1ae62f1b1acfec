package kernel

import (
	"math"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/rng"
)

// Laplacian is k(x, z) = exp(−‖x−z‖₁/σ), σ > 0 in the units of x.
type Laplacian struct{ Sigma float64 }

func init() { register("laplacian", Laplacian{1}) }

// Title returns the name of the kernel for titles and legends.
func (Laplacian) Title() string { return "Laplacian" }

// Scale implements Scaled: σ.
func (k Laplacian) Scale() float64 { return k.Sigma }

// WithScale implements Scaled.
func (Laplacian) WithScale(sigma float64) Kernel { return Laplacian{sigma} }

// Derivative implements Differentiable: −k/σ.
func (k Laplacian) Derivative(_, value float64) float64 { return -value / k.Sigma }

// argument returns the number on which the kernel depends: see ArgumentOf.
func (Laplacian) argument() Argument { return L1Distance }

// Decreasing implements Decreasing: exp(−r/σ) never increases with r.
func (Laplacian) Decreasing() {}

// Eval implements Kernel.
func (k Laplacian) Eval(x, z []float64) float64 {
	var sum float64
	for j, v := range x {
		sum += math.Abs(v - z[j])
	}
	return math.Exp(-sum / k.Sigma)
}

func (k Laplacian) String() string { return "laplacian(sigma=" + formatFloat(k.Sigma) + ")" }

// Validate returns an error if σ is out of range.
func (k Laplacian) Validate() error { return checkSigma("laplacian", k.Sigma) }

// Frequency implements Spectral: it sets w to independent Cauchy variables of scale 1/σ. exp(−‖δ‖₁/σ) = Π_c
// exp(−|δ_c|/σ), and each factor is the characteristic function of such a variable.
func (k Laplacian) Frequency(w []float64, g rng.Stream) {
	g.Float64s(w, 0)
	for c, u := range w {
		w[c] = cauchyQuantile(u) / k.Sigma
	}
}

// cauchyQuantile returns the quantile tan π(u−½) of the standard Cauchy distribution, without cancellation in the
// tails.
func cauchyQuantile(u float64) float64 {
	if u < 0.5 {
		return -1 / math.Tan(math.Pi*u)
	}
	return 1 / math.Tan(math.Pi*(1-u))
}

// Profile sets dst = exp(−r/σ) for 1-norm distances r = dist, and 0 for values below 2⁻²⁰⁰.
func (k Laplacian) Profile(dst, dist []float64) { simd.Exp64(dst, dist, -1/k.Sigma, flush64) }

// Profile32 sets dst = exp(−r/σ) in float32 for 1-norm distances r = dist, and 0 for values below 2⁻¹⁰⁰.
func (k Laplacian) Profile32(dst []float32, dist []float64) {
	for b, r := range dist {
		dst[b] = exponent32(-r / k.Sigma)
	}
	simd.Exp32(dst, dst)
}

// entryError implements entryErrorBounder. With Differences, |x−z| has a small relative error. Otherwise, sparse points
// sum |x−z|−|x|−|z|, which cancels, and points shifted by their mean have rounded coordinates.
func (k Laplacian) entryError(dim float64, arith Arithmetic, summary PointSummary) float64 {
	if arith != Differences && (summary.Sparse || summary.Shifted) {
		return min(1, cancellationError(dim, math.Sqrt(dim*summary.MaxSq)/k.Sigma))
	}
	return (dim + 16) * unitRoundoff
}
