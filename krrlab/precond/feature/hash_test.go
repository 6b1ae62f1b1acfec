package feature

import (
	"math"
	"math/big"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// TestHashArithmetic compares mulMod and polyHash with computations in big integers, also for arguments 0, 1 and p−1.
func TestHashArithmetic(t *testing.T) {
	p := big.NewInt(prime)
	values := []uint64{0, 1, 2, 3, 1 << 30, 1 << 60, prime - 2, prime - 1}
	stream := rng.New(5)
	for i := range 200 {
		values = append(values, stream.Uint64(uint64(i))%prime)
	}
	for _, a := range values {
		for _, b := range values {
			want := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
			if want.Mod(want, p); mulMod(a, b) != want.Uint64() {
				t.Fatalf("%d·%d mod 2⁶¹−1 = %d, want %d", a, b, mulMod(a, b), want)
			}
		}
	}
	for k := 1; k <= 4; k++ {
		hash := newPolyHash(k, stream.Sub("hash", uint64(k)))
		for _, i := range values {
			want, power := new(big.Int), big.NewInt(1)
			for _, a := range hash {
				if a >= prime {
					t.Fatalf("coefficient %d is not in the field", a)
				}
				want.Add(want, new(big.Int).Mul(new(big.Int).SetUint64(a), power))
				power.Mul(power, new(big.Int).SetUint64(i))
			}
			if want.Mod(want, p); hash.value(i) != want.Uint64() {
				t.Fatalf("hash of degree %d at %d is %d, want %d", k-1, i, hash.value(i), want)
			}
		}
	}
}

// TestHashMoments checks two consequences of independent hash values over 40,000 draws. A hash function h into s = 5
// buckets has P[h(1) = h(2) = h(3)] = 1/s², and a sign function g has E[g(0)g(1)g(2)g(3)] = 0. The threshold of five
// standard errors is exceeded with probability 6e-7.
func TestHashMoments(t *testing.T) {
	const draws, s = 40000, 5
	var sharedBucket, signSum float64 // draws with h(1) = h(2) = h(3), and the sum of g(0)g(1)g(2)g(3)
	for draw := range uint64(draws) {
		stream := rng.New(99).Sub("draw", draw)
		bucketHash := newPolyHash(3, stream.Sub("h"))
		if bucketHash.value(1)%s == bucketHash.value(2)%s && bucketHash.value(2)%s == bucketHash.value(3)%s {
			sharedBucket++
		}
		signHash := newPolyHash(4, stream.Sub("g"))
		signSum += 1 - 2*float64((signHash.value(0)+signHash.value(1)+signHash.value(2)+signHash.value(3))&1)
	}
	const p = 1.0 / (s * s)
	if z := (sharedBucket/draws - p) / math.Sqrt(p*(1-p)/draws); math.Abs(z) > 5 {
		t.Errorf("three indices share a bucket in %.4f of the draws, want %.4f", sharedBucket/draws, p)
	}
	if z := signSum / math.Sqrt(draws); math.Abs(z) > 5 {
		t.Errorf("mean of a product of four signs is %.4f, want 0", signSum/draws)
	}
}
