// Package sketch holds distributions over linear maps S: R^m → R^s with
//
//	E[SᵀS] = I,
//
// so that Z·Sᵀ, n×s, keeps the inner products of the rows of Z, n×m, in expectation: section 4
// of Avron, Clarkson and Woodruff applies them to random features, Z_{k+1} = Z_k·S_{k+1}ᵀ
// (package feature, Chain). A Dist is a distribution, an Operator is one draw: immutable,
// safe for concurrent use, a pure function of (Dist, m, s, stream).
//
//	op, err := sketch.SRHT{}.Sample(16000, 4000, rng.New(seed).Sub("sketch"))
//	z2, err := sketch.Apply(ctx, op, z1, nil)
//
// # Which sketch
//
// For one row of m numbers, and vectors x, y of R^m:
//
//	sketch        S                          flops        memory   s·Var[(Sx)ᵀ(Sy)]
//	CountSketch   one ±1 in each column      m            4m       V − 2Σx_i²y_i²
//	SRHT          s^(−1/2)·P·H·D             M·log₂M      4m + 4s  (V − 2Σx_i²y_i²)·(M−s)/(M−1)
//	Gaussian      s^(−1/2)·G, G_ij ~ N(0,1)  2ms          4ms      V
//	Composition   S_k⋯S_2S_1                 their sum    their sum
//
// with V = ‖x‖²‖y‖² + (xᵀy)² and M the least power of two ≥ m. To embed a subspace of dimension
// k to a given accuracy a Gaussian needs s of the order of k, an SRHT of k·log k, a
// CountSketch of k². So a chain goes from wide and cheap to narrow and expensive: CountSketch or
// SRHT first, Gaussian last. On dense data that is in general position all three do about
// equally well at equal s, as the variances say; the orders differ in the worst case.
//
// # The scale of the SRHT
//
// H has entries ±1, HᵀH = M·I, D random signs, and P takes s of the M rows without replacement;
// then E[PᵀP] = (s/M)·I and the scale that makes E[SᵀS] = I is s^(−1/2). (With an
// orthonormal H it would be √(M/s). TestMisprintedScale has both.) An m that is no power of
// two is padded with zeros, which leaves E[SᵀS] = I on R^m. With s = M, S is orthogonal.
//
// # Precision and parallelism
//
// Apply32 computes in float32 and stores float32: sums have at most m terms with both signs,
// and are off by a few units of 2⁻²⁴‖x‖, far below the sketch's own error ‖x‖/√s. Apply64
// computes in float64 with the same S. Apply takes rows in panels on all threads; a row's
// result depends on nothing but the row, so that it has the same bits for any number of threads.
//
// # Speed
//
// Measured with one thread of an AMD EPYC (AVX2), float32, s = m/4, rows that come from
// memory: the SRHT takes about 2 ns a number of Z from m = 1,024 to 65,536, and so does CountSketch,
// where a copy takes 0.2 ns; the Gaussian 0.023 ns times s. Of the SRHT's 2 ns the
// vector butterflies in the first cache are some 0.7; the rest is loading with signs, short runs
// and picking rows. Forming the features costs as much for d of about 20 and tens of times as much
// for d = 784.
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
