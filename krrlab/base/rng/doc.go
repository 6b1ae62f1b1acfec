// Package rng computes random numbers as a pure function of (seed, stream, index).
//
// A Stream is a value without mutable state. Number i of a stream is therefore the
// same in any order of calls and for any number of threads or ranks. The numbers of
// a stream are indexed by a uint64. Use a separate stream for each kind of number:
//
//	g := rng.New(seed).Sub("features")
//	w := g.Sub("frequencies").Normal(j)
//	b := 2 * math.Pi * g.Sub("phases").Float64(j)
//
// Methods of one Stream called with one index share random bits (Normal(0) is a
// function of Uint64(0) and Uint64(1)), so use one kind of method on a stream, and
// Sub for the next kind. Gamma, ChiSquare and IntN use rejection. Their additional
// draws come from separate substreams, so a rejection does not shift other indices.
//
// # Generator
//
// Philox4x32-10 (Salmon et al. 2011), a bijection of 128-bit counters for each
// 64-bit key; it passes BigCrush for counters and keys in any order, and this
// package is tested against the published known answers. Block c of a stream is
//
//	Philox(counter = (c mod 2³², c div 2³², hi mod 2³², hi div 2³²), key)
//
// where the 128 bits (key, hi) are the stream: (seed, 0) for New(seed), and for
// Sub a hash of parent, name and indices, which its comment defines. Two streams
// with different paths have the same 128 bits with probability 2⁻¹²⁸. If their keys
// or their hi differ, all their blocks come from different inputs. A stream has 2⁶³
// blocks of two 64-bit words.
//
// The streams are frozen: tests compare words and numbers of each kind with recorded
// values. Words, uniforms, integers and permutations are the same on every
// machine; Normal, Gamma and ChiSquare use math.Log and similar functions and may
// differ in the last bits between architectures.
//
// # References
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as
// easy as 1, 2, 3, SC11, doi:10.1145/2063384.2063405. G. E. P. Box and M. E.
// Muller, A note on the generation of random normal deviates, 1958,
// doi:10.1214/aoms/1177706645. G. Marsaglia and W. W. Tsang, A simple method for
// generating gamma variables, 2000, doi:10.1145/358407.358414. D. Lemire, Fast
// random integer generation in an interval, 2019, doi:10.1145/3230636.
package rng
