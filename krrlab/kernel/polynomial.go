package kernel

import (
	"fmt"
	"math"
	"strconv"

	"github.com/krrlab/lab/krrlab/internal/outward"
)

// Polynomial is k(x, z) = (γxᵀz + c)^q with γ = Gamma > 0, c = Coef0 ≥ 0 and q = Degree ≥ 1.
type Polynomial struct {
	Gamma, Coef0 float64
	Degree       int
}

// The first prototype has the default parameters. The search of package tune tries the others, of degrees 2, 3 and 4.
func init() {
	register("polynomial", Polynomial{0.01, 1, 3}, Polynomial{1, 1, 2}, Polynomial{1, 1, 3}, Polynomial{1, 1, 4})
}

// argument returns the number on which the kernel depends: see ArgumentOf.
func (Polynomial) argument() Argument { return InnerProduct }

// Title returns the name of the kernel for titles and legends.
func (Polynomial) Title() string { return "polynomial" }

// prose describes the kernel and its parameters in words, for the title of a figure.
func (k Polynomial) prose() string {
	return fmt.Sprintf("polynomial kernel of degree %d, γ = %.4g, c = %.4g", k.Degree, k.Gamma, k.Coef0)
}

// Scale implements Scaled: 1/γ.
func (k Polynomial) Scale() float64 { return 1 / k.Gamma }

// WithScale implements Scaled. γ is rounded to three digits, which is enough for a search.
func (k Polynomial) WithScale(scale float64) Kernel {
	k.Gamma = outward.Rounded(1/scale, 3)
	return k
}

// Derivative implements Differentiable: γq(γp+c)^(q−1) for an inner product p.
func (k Polynomial) Derivative(p, _ float64) float64 {
	if k.Degree == 1 {
		return k.Gamma
	}
	return k.Gamma * float64(k.Degree) * power(k.Gamma*p+k.Coef0, k.Degree-1)
}

// Eval implements Kernel.
func (k Polynomial) Eval(x, z []float64) float64 {
	var inner float64
	for j, v := range x {
		inner += v * z[j]
	}
	return power(k.Gamma*inner+k.Coef0, k.Degree)
}

func (k Polynomial) String() string {
	return "polynomial(gamma=" + formatFloat(k.Gamma) + ", coef0=" + formatFloat(k.Coef0) + ", degree=" +
		strconv.Itoa(k.Degree) + ")"
}

// power returns v^q, q ≥ 1, by multiplication.
func power(v float64, q int) float64 {
	switch q {
	case 1:
		return v
	case 2:
		return v * v
	case 3:
		return v * v * v
	}
	result := 1.0
	for ; q > 1; q >>= 1 {
		if q&1 == 1 {
			result *= v
		}
		v *= v
	}
	return result * v
}

// Validate returns an error if γ, c or q is out of range.
func (k Polynomial) Validate() error {
	switch {
	case !isPositiveFinite(k.Gamma):
		return fmt.Errorf("kernel: polynomial has gamma = %v, want a number > 0", k.Gamma)
	case !(k.Coef0 >= 0) || math.IsInf(k.Coef0, 1):
		return fmt.Errorf("kernel: polynomial has coef0 = %v, want a number ≥ 0", k.Coef0)
	case k.Degree < 1:
		return fmt.Errorf("kernel: polynomial has degree = %d, want at least 1", k.Degree)
	}
	return nil
}

// isPositiveFinite reports whether v is positive and finite.
func isPositiveFinite(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// Profile sets dst = (γp+c)^q for the inner products p in the slice inner.
func (k Polynomial) Profile(dst, inner []float64) {
	for b, p := range inner {
		dst[b] = power(k.Gamma*p+k.Coef0, k.Degree)
	}
}

// entryError implements entryErrorBounder. With the unit roundoff u, the base γp+c has an error of at most
// (d+4)u·(γ‖x‖‖z‖+c), and (γ‖x‖‖z‖+c)^q is at most √(k(x,x)·k(z,z)).
func (k Polynomial) entryError(dim float64, _ Arithmetic, _ PointSummary) float64 {
	return (float64(k.Degree)*(dim+4) + 8) * unitRoundoff
}
