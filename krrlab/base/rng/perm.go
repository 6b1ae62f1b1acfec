package rng

import "fmt"

// Perm returns a uniformly random permutation of 0, …, n-1. It is computed by the inside-out Fisher–Yates shuffle:
// element i is exchanged with element IntN(i, i+1). Perm panics if n < 0.
func (s Stream) Perm(n int) []int {
	if n < 0 {
		panic(fmt.Sprintf("rng: Perm(%d): want at least 0", n))
	}
	p := make([]int, n)
	for i := range p {
		j := s.IntN(uint64(i), i+1)
		p[i] = p[j]
		p[j] = i
	}
	return p
}
