// Package rng gives random numbers as a pure function of (seed, stream, index).
//
// A Stream is a value: nothing advances, so number i is the same whoever asks
// for it, in whatever order, on however many threads or ranks. The numbers of a
// stream are indexed by a uint64; what needs more than one kind of number takes
// more than one stream:
//
//	g := rng.New(seed).Sub("features")
//	w := g.Sub("frequencies").Normal(j)
//	b := 2 * math.Pi * g.Sub("phases").Float64(j)
//
// Methods of one Stream called with one index share random bits (Normal(0) is a
// function of Uint64(0) and Uint64(1)), so use one kind of method on a stream, and
// Sub for the next kind. Gamma, ChiSquare and IntN draw what rejection needs from
// separate substreams and reject without shifting other indices.
//
// # Generator
//
// Philox4x32-10 (Salmon et al. 2011), a bijection of 128-bit counters for each
// 64-bit key; it passes BigCrush for counters and keys in any order, and this
// package holds it to its published known answers. Block c of a stream is
//
//	Philox(counter = (c mod 2³², c div 2³², hi mod 2³², hi div 2³²), key)
//
// where the 128 bits (key, hi) are the stream: (seed, 0) for New(seed), and for
// Sub a hash of parent, name and indices, described there. Streams of unlike
// paths collide with probability 2⁻¹²⁸ a pair; with one key and unlike hi, or
// with unlike keys, all their blocks come from different inputs. A stream has 2⁶³
// blocks of two 64-bit words.
//
// The streams are frozen: tests hold words and numbers of each kind to recorded
// values. Words, uniforms, integers and permutations are the same on every
// machine; Normal, Gamma and ChiSquare go through math.Log and friends and may
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
