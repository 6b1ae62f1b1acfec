// Package sketch provides distributions over linear maps S: R^m → R^s with
//
//	E[SᵀS] = I.
//
// In expectation, Z·Sᵀ, n×s, has the same inner products of rows as Z, n×m. Section 4 of Avron, Clarkson and Woodruff
// (2017) applies such maps to random features Z_0, Z_{k+1} = Z_k·S_{k+1}ᵀ (package feature, Chain). A Dist is a
// distribution; an Operator is a draw from it: immutable, safe for concurrent use, a pure function of (Dist, m, s,
// stream).
//
//	op, err := sketch.SRHT{}.Sample(16000, 4000, rng.New(seed).Sub("sketch"))
//	z2, err := sketch.Apply(ctx, op, z1, nil)
//
// # Which sketch
//
// For one row of m numbers, and vectors x, y of R^m:
//
//	sketch        S                          flops        bytes    s·Var[(Sx)ᵀ(Sy)]
//	CountSketch   one ±1 in each column      m            4m       V − 2Σx_i²y_i²
//	SRHT          s^(−1/2)·P·H·D             M·log₂M      4m + 4s  (V − 2Σx_i²y_i²)·(M−s)/(M−1)
//	Gaussian      s^(−1/2)·G, G_ij ~ N(0,1)  2·m·s        4·m·s    V
//	Composition   S_k⋯S_2S_1                 their sum    their sum
//
// with V = ‖x‖²‖y‖² + (xᵀy)² and M the smallest power of two ≥ m. To embed a subspace of dimension k with a given
// accuracy, a Gaussian needs s of the order of k, an SRHT k·log k, and a CountSketch k². A chain therefore begins with
// wide and cheap sketches and ends with narrow and expensive ones: CountSketch or SRHT first, Gaussian last. On dense
// data in general position all three are about equally accurate for equal s, as the variances show; the orders differ
// in the worst case.
//
// # The scale of the SRHT
//
// H has entries ±1 with HᵀH = M·I, D is a diagonal of random signs, and P selects s of the M rows without replacement.
// Then E[PᵀP] = (s/M)·I, and the scale that gives E[SᵀS] = I is s^(−1/2). (For an orthonormal H it would be √(M/s).
// TestSRHTScale has both.) If m is not a power of two, vectors are padded with zeros, which preserves E[SᵀS] = I
// on R^m. For s = M, S is orthogonal.
//
// # Precision and parallelism
//
// Apply32 computes and stores in float32. Its sums have at most m terms of both signs, and errors of a few units of
// 2⁻²⁴‖x‖, far below the error ‖x‖/√s of the sketch itself. Apply64 computes in float64 with the same S. Apply
// processes panels of rows on all threads. The result of a row depends on that row only, so it has the same bits for
// any number of threads.
//
// # Speed
//
// Measured with one thread of an AMD EPYC (AVX2), float32, s = m/4, and rows read from memory: the SRHT takes about 2
// ns per entry of Z for m from 1,024 to 65,536, and so does CountSketch, while a copy takes 0.2 ns; the Gaussian takes
// 0.023 ns times s. Of the SRHT's 2 ns, about 0.7 ns are vector butterflies in the first-level cache; the remaining
// time is loading with signs, butterflies of short length, and selecting rows. Computing the features takes as much
// time for points of dimension about 20, and tens of times as much for dimension 784.
//
// # References
//
// M. Charikar, K. Chen, M. Farach-Colton, Finding frequent items in data streams, 2004
// (CountSketch). N. Ailon, B. Chazelle, The fast Johnson–Lindenstrauss transform, SIAM J.
// Comput. 39 (2009). J. A. Tropp, Improved analysis of the subsampled randomized Hadamard
// transform, Adv. Adapt. Data Anal. 3 (2011), arXiv:1011.1595. M. B. Cohen, J. Nelson, D. P.
// Woodruff, Optimal approximate matrix product in terms of stable rank, ICALP 2016,
// arXiv:1507.02268. D. P. Woodruff, Sketching as a tool for numerical linear algebra, 2014.
package sketch
