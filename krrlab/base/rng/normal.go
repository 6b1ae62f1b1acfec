package rng

import (
	"fmt"
	"math"
)

// Normal returns number i, standard normal, by Box and Muller: with u₁, u₂ the two
// uniforms (as in Float64) of block ⌊i/2⌋,
//
//	√(−2 ln u₁)·cos 2πu₂ (i even),  √(−2 ln u₁)·sin 2πu₂ (i odd).
//
// Since u₁ ≥ 2⁻⁵³, the tails are truncated at |x| ≤ 8.57; the truncated part has
// probability 1e-17.
func (s Stream) Normal(i uint64) float64 {
	even, odd := s.normalPair(i / 2)
	if i%2 == 0 {
		return even
	}
	return odd
}

// Normals sets dst[k] = Normal(start+k), at half the cost of single calls.
func (s Stream) Normals(dst []float64, start uint64) {
	for k := 0; k < len(dst); {
		i := start + uint64(k)
		even, odd := s.normalPair(i / 2)
		if i%2 == 0 {
			dst[k] = even
			k++
		}
		if k < len(dst) {
			dst[k] = odd
			k++
		}
	}
}

// normalPair returns Normal(2·block) and Normal(2·block+1).
func (s Stream) normalPair(block uint64) (x, y float64) {
	a, b := philox(block, s.hi, s.key)
	r := math.Sqrt(-2 * math.Log(uniform(a)))
	sin, cos := math.Sincos(2 * math.Pi * uniform(b))
	return r * cos, r * sin
}

// Gamma returns number i of the gamma distribution with the given shape a > 0 and
// scale 1 (mean a, variance a), by Marsaglia and Tsang: with d = a−1/3 and
// c = 1/√(9d), draw x normal and u uniform until v = (1+cx)³ > 0 and
//
//	ln u < x²/2 + d − dv + d ln v,
//
// and return dv. For a < 1 it is Gamma(a+1)·u^(1/a). Attempt k takes its normal
// and uniform from numbers 4k and 4k+2 of the substream ("gamma", i). It panics if
// a is not positive and finite.
func (s Stream) Gamma(i uint64, a float64) float64 {
	if !(a > 0) || math.IsInf(a, 1) {
		panic(fmt.Sprintf("rng: gamma of shape %v: want a finite number > 0", a))
	}
	g := s.Sub("gamma", i)
	boost := 1.0
	if a < 1 {
		boost = math.Exp(math.Log(g.Float64(3)) / a) // no attempt uses word 3
		a++
	}
	d := a - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for k := uint64(0); ; k++ {
		x, _ := g.normalPair(2 * k)
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(g.Float64(4*k+2)) < x*x/2+d-d*v+d*math.Log(v) {
			return boost * d * v
		}
	}
}

// ChiSquare returns number i of the chi-square distribution with nu > 0 degrees of
// freedom, 2·Gamma(i, nu/2): mean nu, variance 2nu.
func (s Stream) ChiSquare(i uint64, nu float64) float64 { return 2 * s.Gamma(i, nu/2) }
