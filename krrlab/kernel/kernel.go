package kernel

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/krrlab/lab/krrlab/points"
)

// Kernel is a symmetric positive semidefinite function of two points of the same dimension. One whose calls are
// expensive can have a method EvalTile(dst, x, z []float64, nx, nz int), which sets dst[i·nz+j] to k(x_i, z_j), i < nx,
// j < nz, for rows x_i and z_j that lie one after the other. What holds for Eval holds for it, and Check compares the
// two.
type Kernel interface {
	// Eval returns k(x, z) in float64. It must not keep or change x and z, and
	// must allow calls from several goroutines.
	Eval(x, z []float64) float64
	// String names the kernel and its parameters.
	String() string
}

// Gaussian is k(x, z) = exp(−‖x−z‖₂²/(2σ²)), σ > 0 in the units of x.
type Gaussian struct{ Sigma float64 }

// Laplacian is k(x, z) = exp(−‖x−z‖₁/σ), σ > 0 in the units of x.
type Laplacian struct{ Sigma float64 }

// Matern32 is k(x, z) = (1 + √3r/σ)·exp(−√3r/σ), r = ‖x−z‖₂, σ > 0 in the units
// of x.
type Matern32 struct{ Sigma float64 }

// Matern52 is k(x, z) = (1 + √5r/σ + 5r²/(3σ²))·exp(−√5r/σ), r = ‖x−z‖₂, σ > 0
// in the units of x.
type Matern52 struct{ Sigma float64 }

// Polynomial is k(x, z) = (γxᵀz + c)^q with γ = Gamma > 0, c = Coef0 ≥ 0 and
// q = Degree ≥ 1.
type Polynomial struct {
	Gamma, Coef0 float64
	Degree       int
}

// Func is a user-defined kernel, k(x, z) = F(x, z), of which nothing else is known: it is evaluated
// pair by pair.
type Func struct {
	Name string
	F    func(x, z []float64) float64
}

var (
	_ Kernel = Gaussian{}
	_ Kernel = Laplacian{}
	_ Kernel = Matern32{}
	_ Kernel = Matern52{}
	_ Kernel = Polynomial{}
	_ Kernel = Func{}
)

// Eval implements Kernel.
func (k Gaussian) Eval(x, z []float64) float64 {
	return math.Exp(-dist2(x, z) / (2 * k.Sigma * k.Sigma))
}

// Eval implements Kernel.
func (k Laplacian) Eval(x, z []float64) float64 {
	var s float64
	for j, v := range x {
		s += math.Abs(v - z[j])
	}
	return math.Exp(-s / k.Sigma)
}

// beyond stands for every larger u in a polynomial of u times e^−u, so that this is 0 where
// the polynomial would overflow: e^−beyond is 0 in float64.
const beyond = 1000

// Eval implements Kernel.
func (k Matern32) Eval(x, z []float64) float64 {
	u := min(math.Sqrt(3*dist2(x, z))/k.Sigma, beyond) // √3r/σ
	return (1 + u) * math.Exp(-u)
}

// Eval implements Kernel.
func (k Matern52) Eval(x, z []float64) float64 {
	u := min(math.Sqrt(5*dist2(x, z))/k.Sigma, beyond) // √5r/σ, so that 5r²/(3σ²) = u²/3
	return (1 + u + u*u/3) * math.Exp(-u)
}

// Eval implements Kernel.
func (k Polynomial) Eval(x, z []float64) float64 {
	var s float64
	for j, v := range x {
		s += v * z[j]
	}
	return power(k.Gamma*s+k.Coef0, k.Degree)
}

// Eval implements Kernel.
func (k Func) Eval(x, z []float64) float64 { return k.F(x, z) }

func (k Gaussian) String() string  { return "gaussian(sigma=" + g(k.Sigma) + ")" }
func (k Laplacian) String() string { return "laplacian(sigma=" + g(k.Sigma) + ")" }
func (k Matern32) String() string  { return "matern32(sigma=" + g(k.Sigma) + ")" }
func (k Matern52) String() string  { return "matern52(sigma=" + g(k.Sigma) + ")" }
func (k Polynomial) String() string {
	return "polynomial(gamma=" + g(k.Gamma) + ", coef0=" + g(k.Coef0) + ", degree=" + strconv.Itoa(k.Degree) + ")"
}
func (k Func) String() string {
	if k.Name == "" {
		return "func"
	}
	return k.Name
}

func g(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func dist2(x, z []float64) float64 {
	var s float64
	for j, v := range x {
		d := v - z[j]
		s += d * d
	}
	return s
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
	p := 1.0
	for ; q > 1; q >>= 1 {
		if q&1 == 1 {
			p *= v
		}
		v *= v
	}
	return p * v
}

// Validate returns an error of one line if k is nil or a parameter of it is out of its range, which a
// user-defined kernel says by a method Validate() error.
func Validate(k Kernel) error {
	if k == nil {
		return errors.New("kernel: no kernel given")
	}
	if v, ok := k.(validator); ok {
		return v.Validate()
	}
	return nil
}

type validator interface{ Validate() error }

// Validate checks σ.
func (k Gaussian) Validate() error { return checkSigma("gaussian", k.Sigma) }

// Validate checks σ.
func (k Laplacian) Validate() error { return checkSigma("laplacian", k.Sigma) }

// Validate checks σ.
func (k Matern32) Validate() error { return checkSigma("matern32", k.Sigma) }

// Validate checks σ.
func (k Matern52) Validate() error { return checkSigma("matern52", k.Sigma) }

// Validate checks γ, c and q.
func (k Polynomial) Validate() error {
	switch {
	case !positive(k.Gamma):
		return fmt.Errorf("kernel: polynomial has gamma = %v, want a number > 0", k.Gamma)
	case !(k.Coef0 >= 0) || math.IsInf(k.Coef0, 1):
		return fmt.Errorf("kernel: polynomial has coef0 = %v, want a number ≥ 0", k.Coef0)
	case k.Degree < 1:
		return fmt.Errorf("kernel: polynomial has degree = %d, want at least 1", k.Degree)
	}
	return nil
}

// Validate checks that there is a function.
func (k Func) Validate() error {
	if k.F == nil {
		return fmt.Errorf("kernel: %v has no function F", k)
	}
	return nil
}

func checkSigma(name string, sigma float64) error {
	if !(sigma >= 1e-150 && sigma <= 1e150) { // its square overflows or loses digits
		return fmt.Errorf("kernel: %s has sigma = %v, want a number from 1e-150 to 1e150", name, sigma)
	}
	return nil
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// BuiltIn reports whether k is one of this package's kernels, of which all is known.
func BuiltIn(k Kernel) bool {
	switch k.(type) {
	case Gaussian, Laplacian, Matern32, Matern52, Polynomial:
		return true
	}
	return false
}

// ByPairs reports whether k is evaluated pair by pair, as nothing but Eval is known of it.
func ByPairs(k Kernel) bool { return scalarOf(k) == pairs }

// Costly reports whether each entry of K is a call of Eval, which may take as long as 10⁴ multiplications.
func Costly(k Kernel) bool {
	_, tiles := k.(tiler)
	return ByPairs(k) && !tiles && Given(k) == nil
}

// ShiftInvariant reports whether k is known to depend on x−z only, so that all
// points may be moved together.
func ShiftInvariant(k Kernel) bool {
	s := scalarOf(k)
	return s == squares || s == absolutes
}

// Bounded01 reports whether k is known to have values in [0, 1] and k(x, x) = 1.
func Bounded01(k Kernel) bool { return BuiltIn(k) && ShiftInvariant(k) }

// Diag returns k(x_i, x_i) for all points, in float64, times their weights.
func Diag(k Kernel, x points.Points) []float64 {
	x, factors := points.Split(x)
	diag := diagonal(k, x)
	for i, f := range factors {
		diag[i] *= f * f
	}
	return diag
}

func diagonal(k Kernel, x points.Points) []float64 {
	n, d := x.Dims()
	diag := make([]float64, n)
	if ShiftInvariant(k) {
		k.(profile).Profile(diag, diag) // of ‖x−x‖
		return diag
	}
	if p, ok := k.(Polynomial); ok {
		for i, xx := range points.SqNorms(x) {
			diag[i] = power(p.Gamma*xx+p.Coef0, p.Degree) // (γ‖x‖²+c)^q
		}
		return diag
	}
	row := make([]float64, d)
	for i := range diag {
		x.RowTo(row, i)
		diag[i] = k.Eval(row, row)
	}
	return diag
}
