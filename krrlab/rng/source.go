package rng

import (
	"fmt"
	"math/rand/v2"
)

// Perm returns a uniformly random permutation of 0, …, n-1: Fisher and Yates's
// shuffle from the front, element i exchanged with element IntN(i, i+1). It panics
// if n < 0.
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

// Source returns a fresh reader of the stream's words 0, 1, 2, … for use with
// math/rand/v2. It is the one thing in this package with a state; it must not be
// shared by goroutines.
func (s Stream) Source() rand.Source { return &source{stream: s} }

type source struct {
	stream Stream
	next   uint64 // index of the next word
	kept   uint64 // second word of the block last computed
}

// Uint64 implements rand.Source.
func (r *source) Uint64() uint64 {
	i := r.next
	r.next++
	if i%2 == 1 {
		return r.kept
	}
	var w uint64
	w, r.kept = philox(i/2, r.stream.hi, r.stream.key)
	return w
}
