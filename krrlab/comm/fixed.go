package comm

import "math"

// Fixed turns float64 numbers into 64-bit fixed point: v stands for the integer v·2^e cut
// off towards zero. Sums of such integers are exact, so they are the same in any order
// and for any distribution over workers and ranks, as long as the terms are.
//
// With |Σ v| ≤ B, also for partial sums, and m terms the sum is off by at most m·q with
//
//	q = 2^-e,  B·2^e ∈ [2⁶¹, 2⁶²),  q ≤ B·2⁻⁶¹.
type Fixed struct {
	up, down float64 // 2^e and 2^-e
	valid    bool
}

// FixedFor returns the fixed point for sums of at most bound in absolute value. A bound of
// 0 is one for zeros. If the bound is not finite every sum is NaN.
func FixedFor(bound float64) Fixed {
	bound = math.Abs(bound)
	if !(bound <= math.MaxFloat64) {
		return Fixed{down: math.NaN()}
	}
	_, exp := math.Frexp(bound) // bound < 2^exp
	e := min(62-exp, 1000)
	return Fixed{up: math.Ldexp(1, e), down: math.Ldexp(1, -e), valid: true}
}

// largest is what the bits of numbers without their sign, which are in the order of the numbers,
// NaN being the last, are compared with: no branch for each number.
const largest = (1023 + 62) << 53 // of 2⁶²

// magnitude returns the bits of s without its sign.
func magnitude(s float64) uint64 { return math.Float64bits(s) << 1 }

// Over returns the fixed point for sums of at most B/scale, scale being a power of two.
func (f Fixed) Over(scale float64) Fixed { return Fixed{f.up * scale, f.down / scale, f.valid} }

// Add adds the numbers src to dst, and reports whether all of them fit.
func (f Fixed) Add(dst []int64, src []float64) bool {
	if !f.valid {
		return true // the sum is NaN
	}
	var most uint64
	dst = dst[:len(src)]
	for i, v := range src {
		s := v * f.up
		most = max(most, magnitude(s))
		dst[i] += int64(s)
	}
	return most <= largest
}

// AddScaled adds the numbers src_i·scale_i to dst, scale being powers of two, and reports whether
// all of them fit.
func (f Fixed) AddScaled(dst []int64, src, scale []float64) bool {
	return addScaled(f, dst, src, scale)
}

// AddScaled32 is AddScaled for float32 numbers.
func (f Fixed) AddScaled32(dst []int64, src []float32, scale []float64) bool {
	return addScaled(f, dst, src, scale)
}

func addScaled[T float32 | float64](f Fixed, dst []int64, src []T, scale []float64) bool {
	if !f.valid {
		return true
	}
	var most uint64
	dst, scale = dst[:len(src)], scale[:len(src)]
	for i, v := range src {
		s := float64(v) * f.up * scale[i]
		most = max(most, magnitude(s))
		dst[i] += int64(s)
	}
	return most <= largest
}

// AddFine is AddScaled with what is cut off, which is exact in float64, added to rest in units of
// q·2⁻⁴⁰: together the sum of m ≤ 2²² terms is off by at most m·q·2⁻⁴⁰, less than m·B·2⁻¹⁰¹.
func (f Fixed) AddFine(dst, rest []int64, src, scale []float64) bool {
	if !f.valid {
		return true
	}
	var most uint64
	dst, rest, scale = dst[:len(src)], rest[:len(src)], scale[:len(src)]
	for i, v := range src {
		s := v * f.up * scale[i]
		most = max(most, magnitude(s))
		w := int64(s)
		dst[i] += w
		rest[i] += int64((s - float64(w)) * restUnits)
	}
	return most <= largest
}

// restUnits is how many units of the rest make one of the sum.
const restUnits = 1 << 40

// Fine returns the number that a sum and its rest stand for, to the rounding of float64.
func (f Fixed) Fine(sum, rest int64) float64 {
	sum += rest / restUnits
	return (float64(sum) + float64(rest%restUnits)/restUnits) * f.down
}

// Value returns the number that the integer stands for.
func (f Fixed) Value(sum int64) float64 { return float64(sum) * f.down }
