package kernel

import (
	"math"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/rng"
)

// Gaussian is k(x, z) = exp(−‖x−z‖₂²/(2σ²)), σ > 0 in the units of x.
type Gaussian struct{ Sigma float64 }

func init() { register("gaussian", Gaussian{1}) }

// Title returns the name of the kernel for titles and legends.
func (Gaussian) Title() string { return "Gaussian" }

// Scale implements Scaled: σ.
func (k Gaussian) Scale() float64 { return k.Sigma }

// WithScale implements Scaled.
func (Gaussian) WithScale(sigma float64) Kernel { return Gaussian{sigma} }

// Derivative implements Differentiable: −k/(2σ²).
func (k Gaussian) Derivative(_, value float64) float64 { return -value / (2 * k.Sigma * k.Sigma) }

// Eval implements Kernel.
func (k Gaussian) Eval(x, z []float64) float64 {
	return math.Exp(-squaredDistance(x, z) / (2 * k.Sigma * k.Sigma))
}

func (k Gaussian) String() string { return "gaussian(sigma=" + formatFloat(k.Sigma) + ")" }

// Validate returns an error if σ is out of range.
func (k Gaussian) Validate() error { return checkSigma("gaussian", k.Sigma) }

// Slope implements Radial: 1/(2σ²).
func (k Gaussian) Slope() float64 { return 1 / (2 * k.Sigma * k.Sigma) }

// Spread implements Mixture. It returns 1/σ, because exp(−‖δ‖²/2σ²) is the characteristic function of N(0, I/σ²).
func (k Gaussian) Spread(rng.Stream) float64 { return 1 / k.Sigma }

// Decreasing implements Decreasing: exp(−r²/(2σ²)) never increases with r.
func (Gaussian) Decreasing() {}

// Profile implements Radial: dst = exp(−r²/(2σ²)) for squared distances r² = sq, and 0 for values below 2⁻²⁰⁰.
func (k Gaussian) Profile(dst, sq []float64) { simd.Exp64(dst, sq, -1/(2*k.Sigma*k.Sigma), flush64) }

// exponent implements exponential: −unit/(2σ²).
func (k Gaussian) exponent(unit float64) float64 { return -unit / (2 * k.Sigma * k.Sigma) }
