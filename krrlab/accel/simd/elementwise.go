package simd

import "math"

// Range of the arguments for which Exp32 evaluates its polynomial: e^x is subnormal in float32 below expMin = ln 2⁻¹²⁶
// and overflows above expMax = ln(2¹²⁸−2¹⁰⁴).
const (
	expMin = -87.33654
	expMax = 88.72283
)

// The sum of roundMagic = 1.5·2⁵² and a number t with |t| < 2⁵¹ has round(t), as an integer, in its low bits. The sum
// of expMagic and t has round(t) + 1023 there, the biased exponent of 2^round(t).
const (
	roundMagic = 3 << 51
	expMagic   = roundMagic + 1023
)

// ln2High and ln2Low add up to ln 2. The product n·ln2High is exact for integers |n| < 2²⁰.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// prefix returns the first n elements of s. It panics if s is shorter, even if its capacity suffices.
func prefix[T any](s []T, n int) []T { return s[:n:len(s)] }

// Exp32 sets dst[i] = e^x[i] for every i. The error is at most 0.55 ulp of float32. Results below 2⁻¹²⁶, which occur
// for x < −87.33654, are flushed to zero, because later products with subnormal numbers would be slow. Results above
// the range of float32 are +Inf, and e^NaN is NaN. dst may be x. Exp32 panics if dst is shorter than x.
//
// With n = round(x/ln 2) and r = x − n·ln 2, so that |r| ≤ ½·ln 2, it computes
//
//	e^x = 2ⁿ·p(r)
//
// in float64 arithmetic with fused multiply-adds, where p is the minimax polynomial of degree 6 with
// |p(r)e^−r − 1| ≤ 1.9e-9.
func Exp32(dst, x []float32) {
	applyInEights(dst, x, expMin, expMax, exp32AVX2, expPortable)
}

// assemblyCount returns how many of n numbers the AVX2 routines process: the largest multiple of blockLength, a power
// of two, or 0 if there are no such routines.
func assemblyCount(n, blockLength int) int {
	if !current().hasElementwise {
		return 0
	}
	return n &^ (blockLength - 1)
}

// applyInEights sets dst from x with assembly, which processes eight numbers within [lo, hi] at a time. The other
// numbers, and without AVX2 all numbers, are processed by portable.
func applyInEights(dst, x []float32, lo, hi float32, assembly func(n int, dst, x *float32, lo, hi float32) int,
	portable func(dst, x []float32)) {
	dst = prefix(dst, len(x))
	if !current().hasElementwise {
		portable(dst, x)
		return
	}
	for len(x) > 0 {
		computed := 0
		if n := len(x) &^ 7; n > 0 {
			computed = assembly(n, &dst[0], &x[0], lo, hi)
		}
		end := min(computed+8, len(x))
		portable(dst[computed:end], x[computed:end])
		dst, x = dst[end:], x[end:]
	}
}

// Exp64 sets dst[i] = e^a with a = scale·x[i], or 0 if a < flush. e^NaN is NaN. Every a ≥ flush must be in [−700, 0];
// other results are undefined. The error is at most 0.9 ulp of float64, in addition to the effect of the rounding of a.
// dst may be x. Exp64 panics if dst is shorter than x.
//
// With n = round(a/ln 2) and r = a − n·ln 2, so that |r| ≤ ½·ln 2, it computes
//
//	e^a = 2ⁿ·Σ_{k≤13} r^k/k!
//
// by Horner's rule with fused multiply-adds. The product of n and the first part of ln 2 is exact. The truncation error
// of the series is at most 4.2e-18.
func Exp64(dst, x []float64, scale, flush float64) {
	dst = prefix(dst, len(x))
	n := assemblyCount(len(x), 8)
	if n > 0 {
		exp64AVX2(n, &dst[0], &x[0], scale, flush)
	}
	for i, v := range x[n:] {
		a := scale * v
		if a < flush {
			dst[n+i] = 0
			continue
		}
		t := math.FMA(1/math.Ln2, a, expMagic) // n + 1023 in the low bits
		r := math.FMA(-ln2High, t-expMagic, a)
		r = math.FMA(-ln2Low, t-expMagic, r)
		p := math.FMA(1./6227020800, r, 1./479001600)
		p = math.FMA(p, r, 1./39916800)
		p = math.FMA(p, r, 1./3628800)
		p = math.FMA(p, r, 1./362880)
		p = math.FMA(p, r, 1./40320)
		p = math.FMA(p, r, 1./5040)
		p = math.FMA(p, r, 1./720)
		p = math.FMA(p, r, 1./120)
		p = math.FMA(p, r, 1./24)
		p = math.FMA(p, r, 1./6)
		p = math.FMA(p, r, 1./2)
		p = math.FMA(p, r, 1)
		p = math.FMA(p, r, 1)
		dst[n+i] = p * math.Float64frombits(math.Float64bits(t)<<52)
	}
}

// expPortable is Exp32 in Go, for any numbers.
func expPortable(dst, x []float32) {
	for i, v := range x {
		if !(expMin <= v && v <= expMax) {
			dst[i] = expOutside(v)
			continue
		}
		dst[i] = float32(exp(float64(v)))
	}
}

// exp returns e^y for y in [expMin, expMax], and NaN for NaN.
func exp(y float64) float64 {
	t := math.FMA(1/math.Ln2, y, expMagic) // n + 1023 in the low bits
	r := math.FMA(-math.Ln2, t-expMagic, y)
	r2 := r * r
	p := math.FMA(0.0083748240430173627, r, 0.04166822620487864)
	p = math.FMA(0.0013836834748051283, r2, p)
	p = math.FMA(p, r2, math.FMA(0.16666420072253814, r, 0.49999992075045758))
	p = math.FMA(p, r2, math.FMA(1.0000000363446836, r, 1.0000000005546077))
	return p * math.Float64frombits(math.Float64bits(t)<<52)
}

// expOutside returns e^v for v outside [expMin, expMax], as Exp32 defines it.
func expOutside(v float32) float32 {
	switch {
	case v < expMin:
		return 0
	case v > expMax:
		return float32(math.Exp(float64(v)))
	}
	return v // NaN
}

// cosMax is the largest |x| for which Cos32 evaluates its polynomial. It calls math.Cos for other arguments.
const cosMax = 1 << 20

// Cos32 sets dst[i] = cos x[i] for every i, with x in radians. The absolute error is at most 3.1e-8 for every finite x,
// which is about the error of rounding to float32, and |dst[i]| ≤ 1. cos(±Inf) and cos(NaN) are NaN. dst may be x.
// Cos32 panics if dst is shorter than x.
//
// With n = round(x/π) and r = x − n·π, so that |r| ≤ π/2, it computes
//
//	cos x = (−1)ⁿ·q(r²)
//
// in float64 arithmetic with fused multiply-adds, where q is the minimax polynomial of degree 5 with
// |q(r²) − cos r| ≤ 2.2e-10. The float64 π has an error of 1.2e-16, and r therefore one of at most 4.1e-11.
func Cos32(dst, x []float32) {
	applyInEights(dst, x, -cosMax, cosMax, cos32AVX2, cosPortable)
}

// cosPortable is Cos32 in Go, for any numbers.
func cosPortable(dst, x []float32) {
	for i, v := range x {
		if !(-cosMax <= v && v <= cosMax) {
			dst[i] = float32(math.Cos(float64(v)))
			continue
		}
		y := float64(v)
		t := math.FMA(1/math.Pi, y, roundMagic) // n in the low bits
		r := math.FMA(-math.Pi, t-roundMagic, y)
		u := r * r
		u2 := u * u
		q := math.FMA(-2.6051201739026343e-7, u, 2.4760145062779272e-5)
		q = math.FMA(q, u2, math.FMA(-0.0013888361087732062, u, 0.041666636233978842))
		q = math.FMA(q, u2, math.FMA(-0.49999999357835239, u, 0.99999999978039093))
		// The parity of n becomes the sign.
		dst[i] = float32(math.Float64frombits(math.Float64bits(q) ^ math.Float64bits(t)<<63))
	}
}

// gaussianRow is an assembly routine of GaussianRow for n numbers, a multiple of 16.
type gaussianRow[T number | int32] func(n int, dst *float32, inner *T, zz *float64, xx, c, flush float64)

// GaussianRow turns a row of inner products p_b = xᵀz_b into kernel values:
//
//	dst_b = e^a if a ≥ flush, otherwise 0,  with a = c·max(0, ‖x‖² + ‖z_b‖² − 2p_b).
//
// c = −1/(2σ²) is negative, xx is ‖x‖², zz holds the ‖z_b‖², and flush is at least −87. If the inner products and norms
// are exact integers, the distance is exact, and a has one rounding error. dst and inner may have the same memory.
// GaussianRow panics if dst or zz is shorter than inner.
func GaussianRow[T number | int32](dst []float32, inner []T, zz []float64, xx, c, flush float64) {
	dst, zz = prefix(dst, len(inner)), prefix(zz, len(inner))
	assembly, n := current(), assemblyCount(len(inner), 16)
	if n > 0 {
		pick[gaussianRow[T]](assembly.gaussian32, assembly.gaussian64, assembly.gaussianInt)(
			n, &dst[0], &inner[0], &zz[0], xx, c, flush)
	}
	for b, product := range inner[n:] {
		a := c * clamp(math.FMA(-2, float64(product), xx+zz[n+b]))
		if a < flush {
			dst[n+b] = 0
			continue
		}
		dst[n+b] = float32(exp(a))
	}
}

// SquaredDistances sets dst_b = max(0, ‖x‖² + ‖z_b‖² − 2p_b), the squared distances of a row of inner products
// p_b = xᵀz_b; xx is ‖x‖², zz holds the ‖z_b‖². dst may be inner. It panics if dst or zz is shorter than inner.
func SquaredDistances[T number](dst []float64, inner []T, zz []float64, xx float64) {
	dst, zz = prefix(dst, len(inner)), prefix(zz, len(inner))
	n := assemblyCount(len(inner), 8)
	if n > 0 {
		switch product := any(&inner[0]).(type) {
		case *float32:
			distances32AVX2(n, &dst[0], product, &zz[0], xx)
		case *float64:
			distances64AVX2(n, &dst[0], product, &zz[0], xx)
		}
	}
	for b, product := range inner[n:] {
		dst[n+b] = clamp(math.FMA(-2, float64(product), xx+zz[n+b]))
	}
}

// RoundToFloat32 sets dst[i] to x[i] rounded to float32, or to 0 if |x[i]| < 2⁻¹²⁶, because later products with
// subnormal numbers would be slow. It panics if dst is shorter than x.
func RoundToFloat32(dst []float32, x []float64) {
	dst = prefix(dst, len(x))
	n := assemblyCount(len(x), 8)
	if n > 0 {
		roundAVX2(n, &dst[0], &x[0])
	}
	for i, v := range x[n:] {
		if math.Abs(v) < 0x1p-126 {
			v = 0
		}
		dst[n+i] = float32(v)
	}
}

// clamp returns max(0, r2), and NaN for NaN.
func clamp(r2 float64) float64 {
	if r2 < 0 {
		return 0
	}
	return r2
}

// FromUint16 sets dst[i] to x[i] as a float32. It panics if dst is shorter than x.
func FromUint16(dst []float32, x []uint16) {
	dst = prefix(dst, len(x))
	n := assemblyCount(len(x), 16)
	if n > 0 {
		widen16AVX2(n, &dst[0], &x[0])
	}
	for i, v := range x[n:] {
		dst[n+i] = float32(v)
	}
}

// ToUint16 sets dst[i] to scale·x[i] rounded to the nearest integer, to even on a tie. The products must be in [0,
// 65535]; other results are undefined. It panics if dst is shorter than x.
func ToUint16(dst []uint16, x []float32, scale float32) {
	dst = prefix(dst, len(x))
	n := assemblyCount(len(x), 16)
	if n > 0 {
		narrow16AVX2(n, &dst[0], &x[0], scale)
	}
	const magic = 3 << 22 // the sum of a float32 number and 1.5·2²³ is rounded to a whole number
	for i, v := range x[n:] {
		dst[n+i] = uint16(float32(float32(v*scale)+magic) - magic)
	}
}

// Butterfly sets (a_i, b_i) to (a_i+b_i, a_i−b_i), the step of the fast Walsh–Hadamard
// transform. It panics if b is shorter than a.
func Butterfly[T number](a, b []T) {
	b = prefix(b, len(a))
	n := assemblyCount(len(a), 8)
	if n > 0 {
		switch aStart := any(&a[0]).(type) {
		case *float32:
			sButterflyAVX2(n, aStart, any(&b[0]).(*float32))
		case *float64:
			dButterflyAVX2(n, aStart, any(&b[0]).(*float64))
		}
	}
	for i := n; i < len(a); i++ {
		a[i], b[i] = a[i]+b[i], a[i]-b[i]
	}
}
