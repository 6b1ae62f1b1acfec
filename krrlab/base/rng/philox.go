package rng

import (
	"fmt"
	"math/bits"
)

// Multipliers and key increments (Weyl constants) of Philox4x32, table 2 and
// section 4.3 of Salmon et al.
const (
	philoxM0 = 0xD2511F53
	philoxM1 = 0xCD9E8D57
	philoxW0 = 0x9E3779B9 // golden ratio
	philoxW1 = 0xBB67AE85 // √3−1
)

// philox returns the block of four 32-bit words of the ten-round Philox4x32 for the counter (lo, hi) and a key (Salmon
// et al. 2011, section 3.3). Words are packed in pairs, the first one in the low half. Each round is
//
//	(x₀,x₁,x₂,x₃) ← (hi(M₁x₂)⊕x₁⊕k₀, lo(M₁x₂), hi(M₀x₀)⊕x₃⊕k₁, lo(M₀x₀)),
//
// with k₀, k₁ increased by the golden ratio and √3−1 (as fractions of 2³²)
// between rounds.
func philox(lo, hi, key uint64) (a, b uint64) {
	x0, x1, x2, x3 := uint32(lo), uint32(lo>>32), uint32(hi), uint32(hi>>32)
	k0, k1 := uint32(key), uint32(key>>32)
	for range 10 {
		p0, p1 := philoxM0*uint64(x0), philoxM1*uint64(x2)
		x0, x1, x2, x3 = uint32(p1>>32)^x1^k0, uint32(p1), uint32(p0>>32)^x3^k1, uint32(p0)
		k0 += philoxW0
		k1 += philoxW1
	}
	return uint64(x0) | uint64(x1)<<32, uint64(x2) | uint64(x3)<<32
}

// A Stream is a sequence of 2⁶⁴ random words indexed by uint64. It is a
// value, comparable and safe for concurrent use; the zero Stream is New(0).
type Stream struct{ key, hi uint64 } // the key of Philox, and the upper half of its counters

// New returns the root stream of a seed. Different seeds give different keys.
func New(seed uint64) Stream { return Stream{key: seed} }

// Sub returns the stream of the given name and indices below s, independent of s
// and of all others. Sub("a", 1, 2) and Sub("a", 1).Sub("", 2) are different streams.
//
// The path is hashed to 128 bits in the manner of Matyas, Meyer and Oseas, with
// Philox as the block cipher. The words w of the message are the length of name,
// its bytes eight at a time (little-endian, padded with zeros), the number of
// indices, and the indices; the lengths make the message unambiguous. Starting at
// the parent's (key, hi), for each w
//
//	(key, hi) ← Philox(counter = (w, hi), key) ⊕ (w, hi).
func (s Stream) Sub(name string, index ...uint64) Stream {
	s = s.absorb(uint64(len(name)))
	for i := 0; i < len(name); i += 8 {
		var w uint64
		for j := i; j < min(i+8, len(name)); j++ {
			w |= uint64(name[j]) << (8 * (j - i))
		}
		s = s.absorb(w)
	}
	s = s.absorb(uint64(len(index)))
	for _, w := range index {
		s = s.absorb(w)
	}
	return s
}

// absorb returns the stream after one word of the message that Sub hashes.
func (s Stream) absorb(w uint64) Stream {
	a, b := philox(w, s.hi, s.key)
	return Stream{a ^ w, b ^ s.hi}
}

// Uint64 returns word i of the stream: the first (i even) or second half of block
// ⌊i/2⌋.
func (s Stream) Uint64(i uint64) uint64 {
	a, b := philox(i/2, s.hi, s.key)
	if i%2 == 0 {
		return a
	}
	return b
}

// Float64 returns number i, uniform in the open interval (0, 1):
//
//	(2m+1)·2⁻⁵³,  m the upper 52 bits of Uint64(i),
//
// exact, symmetric about ½, and at least 2⁻⁵³ away from both ends.
func (s Stream) Float64(i uint64) float64 { return uniform(s.Uint64(i)) }

// uniform converts a word to a number in (0, 1), as Float64 documents.
func uniform(w uint64) float64 { return float64(w>>12<<1|1) * 0x1p-53 }

// Float64s sets dst[k] = Float64(start+k).
func (s Stream) Float64s(dst []float64, start uint64) {
	for k := 0; k < len(dst); {
		i := start + uint64(k)
		a, b := philox(i/2, s.hi, s.key)
		if i%2 == 0 {
			dst[k] = uniform(a)
			k++
		}
		if k < len(dst) {
			dst[k] = uniform(b)
			k++
		}
	}
}

// IntN returns integer i, uniform in [0, n) and unbiased (Lemire's method: the
// upper word of n·Uint64(i), redrawn where the lower one is below 2⁶⁴ mod n, which
// happens with probability below n/2⁶⁴; redraws come from the substream ("intn", i)).
// It panics if n < 1.
func (s Stream) IntN(i uint64, n int) int {
	if n < 1 {
		panic(fmt.Sprintf("rng: IntN(%d): want at least 1", n))
	}
	bound := uint64(n)
	hi, lo := bits.Mul64(s.Uint64(i), bound)
	if lo < bound {
		redraw, threshold := s, -bound%bound // 2⁶⁴ mod n
		for k := uint64(0); lo < threshold; k++ {
			if k == 0 {
				redraw = s.Sub("intn", i)
			}
			hi, lo = bits.Mul64(redraw.Uint64(k), bound)
		}
	}
	return int(hi)
}
