package comm

import "math"

// FixedPoint converts float64 numbers to 64-bit fixed point with the unit q = 2^-e: v is represented by the integer
// trunc(v·2^e). Sums of such integers are exact. If the terms are the same, the sum therefore has the same bits for any
// order and any distribution over workers and ranks.
//
// If |Σ v| ≤ B, also for partial sums, then the sum of m terms has an error of at most m·q. The unit follows from B:
//
//	q = 2^-e,  B·2^e ∈ [2⁶¹, 2⁶²),  q ≤ B·2⁻⁶¹.
type FixedPoint struct {
	unitsPerOne, unit float64 // 2^e and q = 2^-e
	valid             bool    // the bound is finite
}

// NewFixedPoint returns the fixed-point format for sums whose absolute value is at most bound. With bound 0 only zeros
// fit. If the bound is not finite, every sum is NaN.
func NewFixedPoint(bound float64) FixedPoint {
	bound = math.Abs(bound)
	if !(bound <= math.MaxFloat64) {
		return FixedPoint{unit: math.NaN()}
	}
	_, exp := math.Frexp(bound) // 2^(exp−1) ≤ bound < 2^exp
	e := min(62-exp, 1000)      // at most 1000, so that neither 2^e nor 2^-e overflows or underflows
	return FixedPoint{unitsPerOne: math.Ldexp(1, e), unit: math.Ldexp(1, -e), valid: true}
}

// magnitudeLimit is magnitude(2⁶²), where 2⁶² is the largest number that fits: the exponent 62 plus the bias 1023,
// followed by 53 zeros. The bits of floating-point numbers without the sign have the same order as the absolute values,
// with NaN last. Therefore one maximum over the bits replaces a comparison of each number.
const magnitudeLimit = (1023 + 62) << 53

// magnitude returns the bits of v without its sign. It increases with |v|.
func magnitude(v float64) uint64 { return math.Float64bits(v) << 1 }

// DivideBound returns the fixed-point format for sums of at most B/scale, where B is the bound of f; scale is a power
// of two.
func (f FixedPoint) DivideBound(scale float64) FixedPoint {
	return FixedPoint{f.unitsPerOne * scale, f.unit / scale, f.valid}
}

// Add adds src to dst elementwise, dst_i += trunc(src_i·2^e), and reports whether all numbers fit.
func (f FixedPoint) Add(dst []int64, src []float64) bool {
	if !f.valid {
		return true // the sum is NaN
	}
	var maxMagnitude uint64
	dst = dst[:len(src)]
	for i, v := range src {
		scaled := v * f.unitsPerOne
		maxMagnitude = max(maxMagnitude, magnitude(scaled))
		dst[i] += int64(scaled)
	}
	return maxMagnitude <= magnitudeLimit
}

// AddScaled adds src_i·scale_i to dst_i, where the scales are powers of two. It reports whether all numbers fit.
func (f FixedPoint) AddScaled(dst []int64, src, scale []float64) bool {
	return addScaled(f, dst, src, scale)
}

// AddScaled32 is AddScaled for float32 numbers.
func (f FixedPoint) AddScaled32(dst []int64, src []float32, scale []float64) bool {
	return addScaled(f, dst, src, scale)
}

// addScaled implements AddScaled and AddScaled32.
func addScaled[T float32 | float64](f FixedPoint, dst []int64, src []T, scale []float64) bool {
	if !f.valid {
		return true
	}
	var maxMagnitude uint64
	dst, scale = dst[:len(src)], scale[:len(src)]
	for i, v := range src {
		scaled := float64(v) * f.unitsPerOne * scale[i]
		maxMagnitude = max(maxMagnitude, magnitude(scaled))
		dst[i] += int64(scaled)
	}
	return maxMagnitude <= magnitudeLimit
}

// AddFine is AddScaled with extra precision: the truncated part of each term, which is exact in float64, is added to
// fraction in units of q·2⁻⁴⁰. The pair (dst, fraction) then represents the sum of m terms with an error of at most
// m·q·2⁻⁴⁰, less than m·B·2⁻¹⁰¹. Up to m = 2²², the sum of the fractions cannot overflow.
func (f FixedPoint) AddFine(dst, fraction []int64, src, scale []float64) bool {
	if !f.valid {
		return true
	}
	var maxMagnitude uint64
	dst, fraction, scale = dst[:len(src)], fraction[:len(src)], scale[:len(src)]
	for i, v := range src {
		scaled := v * f.unitsPerOne * scale[i]
		maxMagnitude = max(maxMagnitude, magnitude(scaled))
		integer := int64(scaled)
		dst[i] += integer
		fraction[i] += int64((scaled - float64(integer)) * fractionUnits)
	}
	return maxMagnitude <= magnitudeLimit
}

// fractionUnits is the number of units of the fraction in one unit of the sum.
const fractionUnits = 1 << 40

// FineValue returns the number that a sum and its fraction represent, rounded to float64.
func (f FixedPoint) FineValue(sum, fraction int64) float64 {
	sum += fraction / fractionUnits
	return (float64(sum) + float64(fraction%fractionUnits)/fractionUnits) * f.unit
}

// Value returns the number sum·2^-e that the integer represents.
func (f FixedPoint) Value(sum int64) float64 { return float64(sum) * f.unit }
