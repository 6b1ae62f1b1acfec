// Package lowrank approximates the kernel matrix K by K̂ = FFᵀ, F n×r, from some of
// its columns, to precondition K+λI with K̂+λ_pI: precond.New takes F as it takes the
// random features Z.
//
// # The methods
//
// Both take the columns C = K(:,S) of r landmarks S, and K̂ = C W⁻¹ Cᵀ with W = K(S,S):
// K̂ ≼ K, and they are equal in the columns S.
//
//	Nystrom      S uniform without replacement
//	RPCholesky   S one after the other, each with probability ∝ the diagonal of K−K̂
//	             so far; in blocks that are thinned by rejection, with the same law
//
// RPCholesky finds outliers and small clusters, which uniform landmarks miss, and by
// its theory tr(K−K̂) is on average within a factor of 1+ε of the best of rank k as
// soon as r ≥ k/ε + k·log(1/(εη)), η being the best relative error of rank k. It does
// not draw what depends on earlier landmarks, so F is as narrow as K allows. Nystrom costs
// half the time or less, all its columns being known at once.
//
// # How to choose
//
// Iterations of preconditioned conjugate gradients measured on MNIST, n = 20,000, λ =
// 0.01, τ = 1e-3, r = 2,000, against as many random features:
//
//	                   λ_p = λ   λ_p = 10λ
//	random features      171        71
//	Nystrom               33        28
//	RPCholesky            30        26
//
// Features need no K and are made of the points alone; they are what to take where K
// is recomputed for each product and r is near n, or K̂ must be an unbiased estimate.
// Elsewhere take RPCholesky; take Nystrom where the data are even and time counts.
// The condition number is bounded (CondBound) by 1+tr(K−K̂)/λ, for any λ_p in [λ, λ+tr(K−K̂)]:
// more rank helps until tr(K−K̂) is near λ. The bound is far above the condition
// number where K−K̂ has many eigenvalues of one size.
//
// # Costs
//
//	flops     n·r² and the r columns of K; RPCholesky also those that are rejected
//	memory    F: 4nr bytes. On the way 8nb, b = Options.Block; 1 MB or, for
//	          r > 8,192, 128r bytes a thread; and
//	          Nystrom:     8r², and 4nr more unless K consists of float32 numbers
//	          RPCholesky:  8br + 16b² + 41n
//
// Seconds measured on two cores with OpenBLAS are in BenchmarkFactor.
//
// # Precision
//
// F is computed in float64 and rounded to float32 once. K̂ is FFᵀ with the rounded F,
// and Trace and Residual are of this K̂, summed in float64.
//
// Nystrom holds C to 48 bits (in two float32 numbers, if one is not enough). W may be
// singular, as duplicated points make it: it gets a relative shift of the diagonal at
// rounding level, and landmarks that depend on others are dropped. With K in float32
// rounding level is 2⁻²³√r, and K̂ is that much less than exact at the landmarks.
//
// RPCholesky needs rows of F to form residual columns and takes them from the rounded
// F. The residual that later landmarks are drawn from, and factored, is thus that of
// K̂ as stored: what rounding took away comes back through later columns. With u = 2⁻²⁴ an
// entry of the residual is off by at most 2u√(K_iiK_jj), a pivot is never below
// 16u·K_jj, so that no entry of F is off by more than √u/2·√K_ii, nor K̂_ii by u/4·K_ii, for
// each pivot so small; and F(S,:) is kept exactly lower triangular, so that the
// columns of landmarks stay right to 4u. Greedy orders and fixed orders of landmarks
// enlarge these errors by the squares of interpolation weights; random pivots seldom
// meet a pivot much smaller than the other d_i. The tests hold the least eigenvalue of
// K−K̂ to be above −Rounding, for smooth kernels on a line too.
//
// K itself is taken as it is given. Where it was rounded to float32 it may have
// negative eigenvalues of the size of that error, and K−K̂ then has some times as much;
// CondBound allows for the rounding of F, not for that of K.
//
// Results have the same bits for any number of threads.
//
// # References
//
// C. K. I. Williams, M. Seeger, Using the Nyström method to speed up kernel machines,
// NIPS 13, 2001. Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber, Randomly pivoted
// Cholesky: practical approximation of a kernel matrix with few entry evaluations,
// Comm. Pure Appl. Math. 78 (2025), doi:10.1002/cpa.22234, arXiv:2207.06503: the law,
// theorem 2.3. E. N. Epperly, J. A. Tropp, R. J. Webber, Embrace rejection: kernel matrix
// approximation by accelerated randomly pivoted Cholesky, arXiv:2410.03969: thinning.
// M. Díaz, E. N. Epperly, Z. Frangella, J. A. Tropp, R. J. Webber, Robust, randomized
// preconditioning for kernel ridge regression, arXiv:2304.12465: as a preconditioner.
// Z. Frangella, J. A. Tropp, M. Udell, Randomized Nyström preconditioning, SIAM J.
// Matrix Anal. Appl. 44 (2023), doi:10.1137/21M1466244: the shift.
package lowrank
