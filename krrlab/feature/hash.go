package feature

import (
	"math/bits"

	"github.com/krrlab/lab/krrlab/rng"
)

// prime is the Mersenne prime 2⁶¹ − 1, the order of the field hashes are computed in.
const prime = 1<<61 - 1

// polyHash is a hash function i ↦ a₀ + a₁i + … + a_{k−1}i^{k−1} mod 2⁶¹−1. With a_j
// independent and uniform the values at any k distinct points below 2⁶¹−1 are
// independent and uniform: the family is k-wise independent (Wegman and Carter 1981).
type polyHash []uint64

// newPolyHash draws a hash function of the k-wise independent family. Coefficient
// j is 61 bits of word 0 of g.Sub("coefficient", j), redrawn with the next word if it is
// the prime itself.
func newPolyHash(k int, g rng.Stream) polyHash {
	h := make(polyHash, k)
	for j := range h {
		c := g.Sub("coefficient", uint64(j))
		h[j] = prime
		for i := uint64(0); h[j] == prime; i++ {
			h[j] = c.Uint64(i) >> 3
		}
	}
	return h
}

// at returns the hash of i, in [0, 2⁶¹−1), by Horner's rule.
func (h polyHash) at(i uint64) uint64 {
	var v uint64
	for j := len(h) - 1; j >= 0; j-- {
		v = mulMod(v, i) + h[j] // below 2⁶²
		if v >= prime {
			v -= prime
		}
	}
	return v
}

// mulMod returns a·b mod 2⁶¹−1 for a, b < 2⁶¹: with ab = 2⁶¹u + v, ab ≡ u + v.
func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	v := lo&prime + (hi<<3 | lo>>61)
	if v >= prime {
		v -= prime
	}
	return v
}
