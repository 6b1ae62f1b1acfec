package kernel

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
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

// profile is a kernel of one number of two points.
type profile interface {
	Kernel
	Profile(dst, s []float64)
}

type profile32 interface {
	Profile32(dst []float32, s []float64)
}

// Argument is the number of two points that a kernel is a function of.
type Argument int

const (
	UnknownArgument Argument = iota // nothing but Eval is known: the kernel is evaluated pair by pair
	SquaredDistance                 // ‖x−z‖₂²
	L1Distance                      // ‖x−z‖₁
	InnerProduct                    // xᵀz
)

// ArgumentOf returns what k is a function of: SquaredDistance for every Radial, L1Distance and InnerProduct for kernels
// of this package only.
func ArgumentOf(k Kernel) Argument {
	if a, ok := k.(interface{ argument() Argument }); ok && BuiltIn(k) {
		return a.argument()
	}
	if _, ok := k.(Radial); ok {
		return SquaredDistance
	}
	return UnknownArgument
}

// Differentiable is a kernel whose derivative with respect to its Argument is known. The search of length scales
// (package tune) needs it.
type Differentiable interface {
	Kernel
	// Derivative returns the derivative at the argument a, where the kernel has the given value.
	Derivative(a, value float64) float64
}

// Scaled is a kernel with a length scale, which --sigma sets and package tune searches.
type Scaled interface {
	Kernel
	// Scale returns the length scale, in the units of the points; of a kernel of inner products, in units of ‖x‖².
	Scale() float64
	// WithScale returns the kernel with another length scale and its other parameters.
	WithScale(scale float64) Kernel
}

// atZero returns g(0).
func atZero(k Radial) float64 {
	var v [1]float64
	k.Profile(v[:], v[:])
	return v[0]
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
		if err := checkDecreasing(d, farthest); err != nil {
			return err
		}
	}
	if d, ok := k.(Differentiable); ok {
		return checkDerivative(r, d, farthest)
	}
	return nil
}

// checkDerivative compares Derivative with central differences of Profile at some squared distances between 0 and the
// largest that was seen.
func checkDerivative(r Radial, d Differentiable, farthest float64) error {
	for _, share := range []float64{0.01, 0.1, 0.3, 0.6} {
		sq, h := share*farthest, 1e-4*share*farthest
		g := []float64{sq - h, sq, sq + h}
		r.Profile(g, g)
		want := (g[2] - g[0]) / (2 * h)
		if got := d.Derivative(sq, g[1]); h > 0 && !(math.Abs(got-want) <= 1e-5*math.Abs(want)+1e-10*atZero(r)/h) {
			return fmt.Errorf("kernel: %v has the derivative %.6g at r² = %g by Derivative and %.6g by differences of "+
				"Profile: want dg/dr²", d, got, sq, want)
		}
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
	points.Panel64To(p.Slice(0, nx), x, d)
	points.Panel64To(p.Slice(n-nz, n), z, d)
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

// Beyond returns what k is at most for points whose distance is at least the argument, and which distance that is. It
// is certain for the kernels of this package; nil for those that are not known to decrease.
func TailBound(k Kernel) (most func(distance float64) float64, by tree.Metric) {
	p, ok := k.(profile)
	if _, decreasing := k.(interface{ Decreasing() }); !ok || !decreasing {
		return nil, by
	}
	if ArgumentOf(k) == L1Distance {
		by = tree.Manhattan
	}
	return func(distance float64) float64 {
		v := []float64{distance}
		p.Profile(v, v)
		return v[0]*(1+0x1p-40) + 0x1p-200 // rounding, and what is below and stored as 0
	}, by
}
