package accel

import (
	"fmt"
	"math"
)

// Bounds of the arguments that Exp32 computes with: e^x is subnormal in float32
// below expMin = ln 2⁻¹²⁶ and overflows above expMax = ln(2¹²⁸−2¹⁰⁴).
const (
	expMin = -87.33654
	expMax = 88.72283
)

// roundMagic is 1.5·2⁵². Adding it to |t| < 2⁵¹ leaves round(t), as an integer,
// in the low bits of the sum.
const roundMagic = 3 << 51

// Exp32 sets dst[i] = e^x[i] for every i. The error is at most 0.55 ulp of
// float32. Results below 2⁻¹²⁶, that is x < −87.33654, are flushed to zero (a
// subnormal would cost the products to come far more than it is worth), those
// above float32's range are +Inf, e^NaN is NaN. dst may be x. Exp32 panics if
// dst is shorter than x.
//
// With n = round(x/ln 2) and r = x − n·ln 2, |r| ≤ ½·ln 2, in float64 arithmetic
//
//	e^x = 2ⁿ·p(r),  p the minimax polynomial of degree 6, |p(r)e^−r − 1| ≤ 1.9e-9.
func Exp32(dst, x []float32) {
	if len(dst) < len(x) {
		panic(fmt.Sprintf("accel: Exp32: len(dst) = %d < len(x) = %d", len(dst), len(x)))
	}
	dst = dst[:len(x)]
	for i, v := range x {
		if !(expMin <= v && v <= expMax) {
			dst[i] = expOutside(v)
			continue
		}
		y := float64(v)
		t := y*(1/math.Ln2) + roundMagic // n in the low bits
		r := y - (t-roundMagic)*math.Ln2
		r2 := r * r
		p := (1.0000000005546077 + 1.0000000363446836*r) +
			r2*((0.49999992075045758+0.16666420072253814*r)+
				r2*((0.04166822620487864+0.0083748240430173627*r)+0.0013836834748051283*r2))
		// Adding n to the exponent of p multiplies it by 2ⁿ.
		dst[i] = float32(math.Float64frombits(math.Float64bits(p) + math.Float64bits(t)<<52))
	}
}

// expOutside is e^v for v outside [expMin, expMax].
func expOutside(v float32) float32 {
	switch {
	case v < expMin:
		return 0
	case v > expMax:
		return float32(math.Exp(float64(v)))
	}
	return v // NaN
}

// cosMax bounds the arguments that Cos32 reduces itself.
const cosMax = 1 << 20

// π = piHi + piLo: piHi has 31 bits, so that n·piHi is exact for |n| < 2²².
const (
	piHi = 3373259426.0 / (1 << 30)
	piLo = math.Pi - piHi
)

// Cos32 sets dst[i] = cos x[i] for every i, x in radians. The absolute error is
// at most 3.1e-8, which is the rounding to float32, for every finite x (above
// |x| = 2²⁰ math.Cos does the work); |dst[i]| ≤ 1. cos(±Inf) and cos(NaN) are
// NaN. dst may be x. Cos32 panics if dst is shorter than x.
//
// With n = round(x/π) and r = x − n·π, |r| ≤ π/2, in float64 arithmetic
//
//	cos x = (−1)ⁿ·q(r²),  q the minimax polynomial of degree 5, |q(r²) − cos r| ≤ 2.2e-10.
func Cos32(dst, x []float32) {
	if len(dst) < len(x) {
		panic(fmt.Sprintf("accel: Cos32: len(dst) = %d < len(x) = %d", len(dst), len(x)))
	}
	dst = dst[:len(x)]
	for i, v := range x {
		if !(-cosMax <= v && v <= cosMax) {
			dst[i] = float32(math.Cos(float64(v)))
			continue
		}
		y := float64(v)
		t := y*(1/math.Pi) + roundMagic // n in the low bits
		n := t - roundMagic
		r := (y - n*piHi) - n*piLo
		u := r * r
		u2 := u * u
		q := (0.99999999978039093 - 0.49999999357835239*u) +
			u2*((0.041666636233978842-0.0013888361087732062*u)+
				u2*(2.4760145062779272e-5-2.6051201739026343e-7*u))
		// The parity of n becomes the sign.
		dst[i] = float32(math.Float64frombits(math.Float64bits(q) ^ math.Float64bits(t)<<63))
	}
}
