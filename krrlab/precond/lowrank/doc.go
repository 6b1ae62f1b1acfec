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
//	NystromAt    S given, however it was chosen
//	RPCholesky   S one after the other, each with probability ∝ the diagonal of K−K̂
//	             so far; in blocks that are thinned by rejection, with the same law
//
// RPCholesky finds outliers and small clusters, which uniform landmarks miss, and by
// its theory tr(K−K̂) is on average within a factor of 1+ε of the best of rank k as
// soon as r ≥ k/ε + k·log(1/(εη)), η being the best relative error of rank k. It does
// not draw what depends on earlier landmarks, so F is as narrow as K allows. Nystrom
// spares it the columns that are rejected, 12 to 15 % in the measurements below.
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
// and at n = 5,000, r = 500: 207 and 82, 32 and 29, 33 and 28. So take
// RPCholesky, whatever the data; on even data like these Nystrom is as good and a
// little faster. Features are made of the points alone, without columns of K: take
// them to follow the paper, or where a kernel value is very expensive.
//
// The condition number is bounded (CondBound) by 1+tr(K−K̂)/λ, for any λ_p in [λ, λ+tr(K−K̂)]:
// more rank helps until tr(K−K̂) is near λ. The bound is far above the condition
// number where K−K̂ has many eigenvalues of one size.
//
// # Costs
//
//	flops     n·r² and r columns of K; RPCholesky also those that are rejected
//	memory    4nr bytes, F, and on the way, b = Options.Block,
//	          Nystrom:     8r², and 2048r a thread
//	          RPCholesky:  4nr + 8nb + 8b(3r+2b) + 41n, and 2048·min(r, 512) a thread
//
// Of P ranks each forms n/P rows of F, and 4nr and 8nb bytes are 1/P of that. RPCholesky sends 8br/P bytes for each
// block of proposals, with the r of then, Nystrom next to nothing: each rank forms all of W, or of K(S,S).
//
// Seconds measured on two cores with OpenBLAS, K in float32 tiles: n = 5,000, r = 500 0.1
// and 0.16; n = 10,000, r = 1,000 0.55 and 0.7. Columns formed again in float64 take n·r·d multiply-adds beside:
// at n = 5,000, r = 500, d = 784 the factor then took 0.8 and 1.2 seconds on two cores under a load of 30.
//
// # Precision
//
// F is computed in float64 and rounded to float32 once. K̂ is FFᵀ with the rounded F,
// and Trace and Residual are of this K̂, summed in float64.
//
// Nystrom rounds C, and RPCholesky F until it is finished, to 48 bits, the sum of two
// float32 numbers. That they are so many matters: where
// residual columns are formed with an F rounded to 24 bits, its errors come back
// enlarged by the squares of interpolation weights, and K−K̂ was seen to have
// eigenvalues of −10 times Rounding on smooth kernels.
//
// Rounding that enters the columns or the factorization would be enlarged in the same way, and K−K̂ ≽
// −eI with an e that is known needs more: both methods add a relative shift ν of four times that
// rounding, 1e-9 for 2,000 landmarks, to the diagonal of W. Then the weights drop out of the bound of e
// (certify.go has the proof), nearly all of which is the rounding of F to float32. The shift makes
// K̂ differ from K at the landmarks by at most √(ν‖K‖₂)/2 if the diagonal of K is 1.
//
// W may be singular, as duplicated points make it. Nystrom drops landmarks that depend on others.
// RPCholesky takes no pivot below 2⁻²⁰k(x, x). Once nothing above that is left K̂ is K to
// the rounding of F, and it stops.
//
// What is certain holds for the positive semi-definite K that the columns are said to come from, to the
// EntryError of the Source. Columns of a K that was rounded to float32 or 16 bits have no such
// error: it may have negative eigenvalues of the size of that rounding, K−K̂ some times as much, and
// CondBound then gives no bound. So take columns of gram's Exact, in float64: n·r entries, beside the n²/2 that
// are stored.
//
// Results have the same bits for any number of threads and of ranks.
//
// # References
//
// C. K. I. Williams, M. Seeger, Using the Nyström method to speed up kernel machines,
// NIPS 13, 2001. Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber, Randomly pivoted
// Cholesky: practical approximation of a kernel matrix with few entry evaluations,
// Comm. Pure Appl. Math. 78 (2025), doi:10.1002/cpa.22234, arXiv:2207.06503: the law and
// its theory. E. N. Epperly, J. A. Tropp, R. J. Webber, Embrace rejection: kernel matrix
// approximation by accelerated randomly pivoted Cholesky, arXiv:2410.03969: thinning.
// M. Díaz, E. N. Epperly, Z. Frangella, J. A. Tropp, R. J. Webber, Robust, randomized
// preconditioning for kernel ridge regression, arXiv:2304.12465: as a preconditioner.
// Z. Frangella, J. A. Tropp, M. Udell, Randomized Nyström preconditioning, SIAM J.
// Matrix Anal. Appl. 44 (2023), doi:10.1137/21M1466244: the shift.
package lowrank
