package kernel

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
)

// Radial is a kernel k(x, z) = g(r²) of r² = ‖x−z‖₂², built-in or user-defined. Its tiles are formed from inner
// products by BLAS and then row by row, which is faster than calling Eval for each pair. A Radial can have a faster
// method for values in float32, such as one based on simd.Exp32: Profile32(dst []float32, sq []float64) sets dst[i] to
// g(sq[i]), or to 0 if that is subnormal, and may overwrite sq.
type Radial interface {
	Kernel
	// Profile sets dst[i] = g(sq[i]) for all sq[i] ≥ 0. The slices have the same length and may be identical. Profile
	// must allow concurrent calls.
	Profile(dst, sq []float64)
	// Slope returns |g′(0)|, or +Inf if it is infinite or unknown. Proved error bounds depend on it: K is formed from
	// inner products if Slope shows that their rounding is harmless, and otherwise from differences, about ten times
	// slower. |g′(0)| bounds |g′| everywhere: a positive semi-definite g(r²) is ∫cos(rt)dμ(t), whose derivative with
	// respect to r is at most r∫t²dμ(t) = 2r|g′(0)|.
	Slope() float64
}

// Mixture is a Radial that is a scale mixture of Gaussians, with a random scale s ≥ 0,
//
//	k(x, z) = g(0)·E exp(−s²‖x−z‖²/2).
//
// Every Radial that is positive semi-definite in all dimensions is one (I. J. Schoenberg, Ann. of Math. 39, 1938). Its
// spectral measure is the distribution of s·ξ, ξ ∼ N(0, I), so it has Fourier features.
type Mixture interface {
	Radial
	// Spread draws s from the stream g, which is used for nothing else.
	Spread(g rng.Stream) float64
}

// Spectral is a kernel of x−z with a known spectral measure, k(x, z) = k(x, x)·E cos wᵀ(x−z). It has Fourier features.
type Spectral interface {
	Kernel
	// Frequency sets w, whose length is the dimension of the points, to a random frequency drawn from the stream g,
	// which is used for nothing else.
	Frequency(w []float64, g rng.Stream)
}

// profile is a kernel that is a function of one number computed from two points, its Argument.
type profile interface {
	Kernel
	Profile(dst, arguments []float64)
}

// profile32 is a profile with a faster method for values in float32 (see Radial).
type profile32 interface {
	Profile32(dst []float32, arguments []float64)
}

// Argument is the number, computed from two points, on which a kernel depends.
type Argument int

const (
	UnknownArgument Argument = iota // only Eval is known, and the kernel is evaluated pair by pair
	SquaredDistance                 // ‖x−z‖₂²
	L1Distance                      // ‖x−z‖₁
	InnerProduct                    // xᵀz
)

// ArgumentOf returns the argument of k: SquaredDistance for every Radial, and L1Distance or InnerProduct for some
// kernels of this package.
func ArgumentOf(k Kernel) Argument {
	if a, ok := k.(interface{ argument() Argument }); ok && BuiltIn(k) {
		return a.argument()
	}
	if _, ok := k.(Radial); ok {
		return SquaredDistance
	}
	return UnknownArgument
}

// Differentiable is a kernel with a known derivative with respect to its Argument. The search of length scales (package
// tune) needs it.
type Differentiable interface {
	Kernel
	// Derivative returns the derivative of the kernel with respect to its Argument, at the value a of the Argument.
	// value is the kernel at a.
	Derivative(a, value float64) float64
}

// Scaled is a kernel with a length scale, which --sigma sets and package tune searches.
type Scaled interface {
	Kernel
	// Scale returns the length scale in the units of the points, or in units of ‖x‖² for a kernel of inner products.
	Scale() float64
	// WithScale returns the kernel with another length scale and the same other parameters.
	WithScale(scale float64) Kernel
}

// atZero returns g(0).
func atZero(k Radial) float64 {
	var v [1]float64
	k.Profile(v[:], v[:])
	return v[0]
}

const (
	checkedPairs = 64   // largest number of pairs of points that Check evaluates
	profileTol   = 1e-9 // largest relative difference that Check accepts as rounding: a judgment
)

// Check tests the claims of a user-defined Radial on some pairs of the points. It returns an error if Profile differs
// from Eval, if k(x, x) is not the largest value, if g decreases from 0 faster than Slope allows, if Derivative is
// wrong, or if a Decreasing kernel increases at distances like those of the points. For a kernel with EvalTile it
// compares EvalTile with Eval. For a Precomputed it checks that K is present and the points are rows of K. It accepts
// all other kernels.
func Check(k Kernel, x points.Points) error {
	if p, ok := k.(*Precomputed); ok {
		if p.matrix == nil {
			return fmt.Errorf("kernel: a model of a precomputed K holds no K: it can only predict, from K(test, "+
				"train) with %d numbers per row", p.n)
		}
		return p.CheckRows(x)
	}
	if t, ok := k.(tiler); ok && IsPairwise(k) {
		return checkTile(k, t, x)
	}
	if r, ok := k.(Radial); ok && !BuiltIn(k) {
		return checkRadial(r, x)
	}
	return nil
}

// checkRadial is Check for a user-defined Radial.
func checkRadial(k Radial, x points.Points) error {
	if err := checkSlope(k); err != nil {
		return err
	}
	farthest, err := checkPairs(k, x)
	if err != nil {
		return err
	}
	if d, ok := k.(Decreasing); ok {
		if err := checkDecreasing(d, farthest); err != nil {
			return err
		}
	}
	if d, ok := k.(Differentiable); ok {
		return checkDerivative(k, d, farthest)
	}
	return nil
}

// checkSlope checks that g(0) and Slope are positive, and that g decreases from 0 no faster than Slope allows.
func checkSlope(k Radial) error {
	atOrigin, slope := atZero(k), k.Slope()
	if !(atOrigin > 0) || math.IsInf(atOrigin, 1) || !(slope > 0) {
		return fmt.Errorf("kernel: %v has g(0) = %v and Slope() = %v: want positive numbers, or +Inf for a slope "+
			"that is not known", k, atOrigin, slope)
	}
	for t := range 10 { // |g(0)−g(r²)| ≤ |g′(0)|r² must hold at r² = g(0)/|g′(0)|·4^−t
		g := []float64{math.Ldexp(atOrigin/slope, -2*t)}
		sq := g[0]
		if k.Profile(g, g); atOrigin-g[0] > slope*sq+profileTol*atOrigin {
			return fmt.Errorf("kernel: %v falls by %.4g from r² = 0 to %g, more than Slope() = %g allows: want "+
				"|g′(0)|, or +Inf where it is not known", k, atOrigin-g[0], sq, slope)
		}
	}
	return nil
}

// checkPairs compares Profile with Eval for some pairs of the points, and checks that no value exceeds k(x, x). It
// returns the largest ‖x−z‖² of the pairs.
func checkPairs(k Radial, x points.Points) (farthest float64, err error) {
	n, d := x.Dims()
	atOrigin := atZero(k)
	rounding := profileTol * atOrigin
	xRow, zRow := make([]float64, d), make([]float64, d)
	for pair := range min(n, checkedPairs) {
		i := pair * n / min(n, checkedPairs)
		j := (i + 1 + pair*pair) % n // i and j are close together for some pairs and far apart for others
		x.RowTo(xRow, i)
		x.RowTo(zRow, j)
		g := []float64{squaredDistance(xRow, zRow)}
		sq, eval := g[0], k.Eval(xRow, zRow)
		switch k.Profile(g, g); {
		case !(math.Abs(g[0]-eval) <= rounding): // the negation also rejects NaN
			return 0, fmt.Errorf("kernel: %v of points %d and %d, at r² = %g, is %v by Profile and %v by Eval: want "+
				"one kernel", k, i, j, sq, g[0], eval)
		case math.Abs(g[0]) > atOrigin+rounding:
			return 0, fmt.Errorf("kernel: %v of points %d and %d is %v, above k(x, x) = %v: it is not positive "+
				"semi-definite", k, i, j, g[0], atOrigin)
		}
		farthest = max(farthest, sq)
	}
	return farthest, nil
}

// checkDerivative compares Derivative with central differences of Profile at some squared distances between 0 and
// farthest.
func checkDerivative(r Radial, d Differentiable, farthest float64) error {
	for _, fraction := range []float64{0.01, 0.1, 0.3, 0.6} {
		sq, h := fraction*farthest, 1e-4*fraction*farthest
		g := []float64{sq - h, sq, sq + h}
		r.Profile(g, g)
		// The central difference has a relative truncation error O((h/sq)²), and a rounding error that is divided by h.
		want := (g[2] - g[0]) / (2 * h)
		if got := d.Derivative(sq, g[1]); h > 0 && !(math.Abs(got-want) <= 1e-5*math.Abs(want)+1e-10*atZero(r)/h) {
			return fmt.Errorf("kernel: %v has the derivative %.6g at r² = %g by Derivative and %.6g by differences of "+
				"Profile: want dg/dr²", d, got, sq, want)
		}
	}
	return nil
}

// checkDecreasing checks that g is never negative and never increases, at 256 distances up to twice the square root of
// farthest.
func checkDecreasing(k Decreasing, farthest float64) error {
	var sq, g [256]float64 // squared distances, and the values of the kernel
	for i := range sq {
		sq[i] = 4 * farthest * math.Pow(float64(i)/float64(len(sq)-1), 2)
	}
	k.Profile(g[:], sq[:])
	for i, v := range g {
		if !(v >= 0) || i > 0 && v > g[i-1]*(1+profileTol) {
			return fmt.Errorf("kernel: %v says that it decreases, and is %v at r² = %g after %v: leave the method "+
				"Decreasing out", k, v, sq[i], g[max(i-1, 0)])
		}
	}
	return nil
}

// checkTile compares EvalTile with Eval on a tile that is not square.
func checkTile(k Kernel, byTile tiler, all points.Points) error {
	n, d := all.Dims()
	nx, nz := min(n, 5), min(n, 4)
	x, z, tile := make([]float64, nx*d), make([]float64, nz*d), make([]float64, nx*nz)
	for i := range nx {
		all.RowTo(x[i*d:(i+1)*d], i)
	}
	for i := range nz {
		all.RowTo(z[i*d:(i+1)*d], n-nz+i)
	}
	for i := range tile {
		tile[i] = math.NaN()
	}
	byTile.EvalTile(tile, x, z, nx, nz)
	var largest float64
	evals := make([]float64, nx*nz)
	for i := range evals {
		evals[i] = k.Eval(x[i/nz*d:][:d], z[i%nz*d:][:d])
		largest = max(largest, math.Abs(evals[i]))
	}
	for i, v := range evals {
		tileValue := tile[i]
		bothNaN := math.IsNaN(tileValue) && math.IsNaN(v)
		if tileValue != v && !(math.Abs(tileValue-v) <= profileTol*largest) && !bothNaN {
			return fmt.Errorf("kernel: %v of points %d and %d is %v by EvalTile and %v by Eval: want one kernel", k,
				i/nz, n-nz+i%nz, tileValue, v)
		}
	}
	return nil
}

// Decreasing is a Radial with 0 ≤ g(t) ≤ g(s) for all s ≤ t, so that entries of K between distant points are
// negligible. Check detects a false claim only if it shows at one of the pairs that Check evaluates.
type Decreasing interface {
	Radial
	Decreasing()
}

// TailBound returns an upper bound of k as a function of a lower bound of the distance of two points. metric says
// whether the distance is ‖x−z‖₂² or ‖x−z‖₁. The bound is proved for the kernels of this package; for a user-defined
// kernel it relies on its method Decreasing. TailBound returns a nil function for kernels that are not known to
// decrease.
func TailBound(k Kernel) (bound func(distance float64) float64, metric tree.Metric) {
	p, ok := k.(profile)
	if _, decreasing := k.(interface{ Decreasing() }); !ok || !decreasing {
		return nil, metric
	}
	if ArgumentOf(k) == L1Distance {
		metric = tree.Manhattan
	}
	return func(distance float64) float64 {
		v := []float64{distance}
		p.Profile(v, v)
		return v[0]*(1+0x1p-40) + 0x1p-200 // the factor covers rounding, the summand values that are stored as 0
	}, metric
}
