package sketchsize

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// ConditionConstants has the constants of the two conditions of Theorem 7 (Avron, Clarkson and Woodruff 2017) on a
// matrix of features Z, n×s, for the kernel matrix K and the ridge λ. With P the orthogonal projector on the span of
// the eigenvectors of ZZᵀ whose eigenvalues exceed θλ, and K = VVᵀ, the conditions are
//
//  1. ‖(I−P)K(I−P)‖₂ ≤ αλ,
//  2. (1−γ)‖ZᵀPx‖² ≤ ‖VᵀPx‖² ≤ (1+γ)‖ZᵀPx‖²  for all x.
type ConditionConstants struct {
	Name  string  `json:"name"`  // name of the preset, or "own constants"
	Theta float64 `json:"theta"` // θ, threshold of the eigenvalues of ZZᵀ in units of λ
	Alpha float64 `json:"alpha"` // α of condition 1
	Gamma float64 `json:"gamma"` // γ of condition 2
}

// The presets. PaperConstants has the constants printed in the paper; for TensorSketch they need about 11,000 times the
// features of Theorem 1. Kappa5Constants and Kappa10Constants guarantee κ ≤ 5 and κ ≤ 10, with about 74 and 16 times
// the features of Theorem 1.
var (
	PaperConstants   = ConditionConstants{"paper", 0.05, 0.10, 0.10}
	Kappa5Constants  = ConditionConstants{"kappa5", 0.26, 0.36, 0.30}
	Kappa10Constants = ConditionConstants{"kappa10", 0.36, 0.56, 0.54}
)

// Set parses the text θ,α,γ of a flag, and checks the constants. It changes c even if it returns an error.
func (c *ConditionConstants) Set(text string) error {
	var trailing string
	*c = ConditionConstants{Name: "own constants"}
	if n, _ := fmt.Sscanf(text+" ", "%g,%g,%g%s", &c.Theta, &c.Alpha, &c.Gamma, &trailing); n != 3 {
		return fmt.Errorf("%q: want θ,α,γ, such as 0.26,0.36,0.30", text)
	}
	return c.Validate()
}

// String returns the text that Set parses, or "" for zero constants.
func (c ConditionConstants) String() string {
	if c == (ConditionConstants{}) {
		return ""
	}
	return fmt.Sprintf("%g,%g,%g", c.Theta, c.Alpha, c.Gamma)
}

// Type returns the name of the value in the help text of a flag.
func (ConditionConstants) Type() string { return "θ,α,γ" }

// Validate returns an error if the constants do not imply any bound.
func (c ConditionConstants) Validate() error {
	if !(c.Theta >= 0 && c.Alpha >= 0 && c.Gamma >= 0 && c.Gamma < 1) ||
		math.IsInf(c.Theta, 1) || math.IsInf(c.Alpha, 1) {
		return fmt.Errorf("sketchsize: test with θ=%g, α=%g, γ=%g: want θ ≥ 0, α ≥ 0 and 0 ≤ γ < 1", c.Theta, c.Alpha,
			c.Gamma)
	}
	return nil
}

// mustBeValid panics if the constants do not imply any bound.
func (c ConditionConstants) mustBeValid() {
	if err := c.Validate(); err != nil {
		panic(err.Error())
	}
}

// Bound returns the bound of κ(M⁻¹A) with A = K+λI and M = ZZᵀ+λI that the two conditions guarantee:
//
//	κ(M⁻¹A) ≤ max_t hi(t) / min_t lo(t),  t ≥ 0,
//	hi(t) = [1+(√((1+γ)t)+√α)²]/(1+t),  lo(t) = [1+((√((1−γ)t)−√α)₊)²]/(1+θ+t).
//
// Proof. Let λ = 1, take y with ‖y‖ = 1, and let t = ‖ZᵀPy‖². Condition 2 gives √((1−γ)t) ≤ ‖VᵀPy‖ ≤ √((1+γ)t), and
// condition 1 gives ‖Vᵀ(I−P)y‖ ≤ √α. Therefore ‖Vᵀy‖ is between the difference and the sum of these norms, which bounds
// yᵀAy = 1+‖Vᵀy‖². Because P projects on eigenvectors of ZZᵀ, yᵀMy = 1+t+‖Zᵀ(I−P)y‖² is between 1+t and 1+θ+t. The
// quotient of the bounds gives the claim.
//
// The extremes over t are roots of quadratics, so that the value is exact to rounding. The paper's chain of
// inequalities gives only κ ≤ 34.3 for its constants; this bound is 2.13 (erratum 9). Bound panics unless θ, α ≥ 0 and
// 0 ≤ γ < 1.
func (c ConditionConstants) Bound() float64 {
	c.mustBeValid()
	return c.Upper() / c.Lower()
}

// Upper returns max_t hi(t), so that A ≼ hi·M. It is 1+γ if hi(t) only approaches this supremum for t → ∞.
//
// With a = 1+γ and x = √t, hi = [1+(√a·x+√α)²]/(1+x²), and hi' = 0 if
//
//	√(aα)·x² + (1+α−a)·x − √(aα) = 0.
func (c ConditionConstants) Upper() float64 {
	c.mustBeValid()
	a := 1 + c.Gamma
	hiAt := func(x float64) float64 { return (1 + square(math.Sqrt(a)*x+math.Sqrt(c.Alpha))) / (1 + x*x) }
	hi := max(hiAt(0), a)
	if x, ok := positiveRoot(math.Sqrt(a*c.Alpha), 1+c.Alpha-a, -math.Sqrt(a*c.Alpha)); ok {
		hi = max(hi, hiAt(x))
	}
	return hi
}

// Lower returns min_t lo(t), so that A ≽ lo·M. It is 1−γ if lo(t) only approaches this infimum for t → ∞.
//
// With b = 1−γ, x = √t and T = 1+θ: as long as √b·x ≤ √α, lo = 1/(T+x²) decreases, to its minimum at x² = α/b. Beyond
// that, lo = [1+(√b·x−√α)²]/(T+x²), and lo' = 0 if
//
//	√(bα)·x² + (bT−1−α)·x − T√(bα) = 0.
func (c ConditionConstants) Lower() float64 {
	c.mustBeValid()
	b, top := 1-c.Gamma, 1+c.Theta
	loAt := func(x float64) float64 {
		return (1 + square(max(math.Sqrt(b)*x-math.Sqrt(c.Alpha), 0))) / (top + x*x)
	}
	kink := math.Sqrt(c.Alpha / b)
	lo := min(loAt(kink), b)
	if x, ok := positiveRoot(math.Sqrt(b*c.Alpha), b*top-1-c.Alpha, -top*math.Sqrt(b*c.Alpha)); ok && x > kink {
		lo = min(lo, loAt(x))
	}
	return lo
}

// Margin returns the ε below which (1−ε)A ≼ M ≼ (1+ε)A implies both conditions:
//
//	ε ≤ 1 − (1+θ)/(1+α)        (condition 1),
//	ε ≤ γ/(1+γ+1/θ)            (condition 2, upper side),
//	ε ≤ γ/(1−γ+1/θ)            (condition 2, lower side; the weaker one).
//
// For condition 1, a unit vector y of range(I−P) that violates it has yᵀAy > (1+α)λ and yᵀMy ≤ (1+θ)λ. For condition 2,
// z = ‖Zᵀy‖² > θλ for a unit vector y of range(P), and yᵀKy ≤ (z+λ)/(1−ε)−λ. A negative margin (α < θ) means that no ε
// suffices.
func (c ConditionConstants) Margin() float64 {
	c.mustBeValid()
	return min(1-(1+c.Theta)/(1+c.Alpha), c.Gamma/(1+c.Gamma+1/c.Theta))
}

// FeatureFactor returns the number of features with which TensorSketch passes the test, as a multiple of the number
// that Theorem 1 requires for the same probability. Theorem 1 requires ε = ½ of Lemma 4, and s is proportional to ε⁻².
// The factor is therefore (1/2ε)², with ε the Margin, or +Inf if no number of features suffices.
func (c ConditionConstants) FeatureFactor() float64 {
	if eps := c.Margin(); eps > 0 {
		return square(0.5 / eps)
	}
	return math.Inf(1)
}

// square returns x².
func square(x float64) float64 { return x * x }

// positiveRoot returns the positive root of px²+qx+r for p > 0 > r, without cancellation; ok is false if p = 0.
func positiveRoot(p, q, r float64) (x float64, ok bool) {
	if p == 0 {
		return 0, false
	}
	root := math.Sqrt(q*q - 4*p*r)
	if q >= 0 {
		return -2 * r / (q + root), true
	}
	return (root - q) / (2 * p), true
}

// coverage states what Theorem 7 proves for a kernel and its features.
func coverage(k kernel.Kernel, features feature.Dist, bound float64) string {
	_, isPolynomial := k.(kernel.Polynomial)
	if doubling, ok := features.(feature.Doubling); ok {
		features = doubling.Dist
	}
	if _, isTensorSketch := features.(feature.TensorSketch); isPolynomial && isTensorSketch {
		return fmt.Sprintf("Theorem 7 covers this kernel: the conditions imply κ ≤ %.3g, and s of the order of "+
			"s_λ²/δ passes them with probability 1−δ", bound)
	}
	return fmt.Sprintf("Theorem 7 is stated for polynomial kernels with TensorSketch. That the conditions imply κ "+
		"≤ %.3g holds for every kernel and Z; that s of the order of s_λ²/δ passes them is not proved for this one",
		bound)
}
