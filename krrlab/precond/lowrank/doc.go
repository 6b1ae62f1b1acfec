// Package lowrank approximates the kernel matrix K by K̂ = FFᵀ, where F is n×r, from some of its columns. K+λI is then
// preconditioned with K̂+λ_pI: precond.New accepts F in the same form as the random features Z.
//
// # The methods
//
// Every method forms the columns C = K(:,S) of r landmarks S, and K̂ = C W⁻¹ Cᵀ with W = K(S,S). Then K̂ ≼ K, and the
// two matrices agree in the columns S.
//
//	Nystrom      S uniform without replacement
//	NystromAt    S given by the caller
//	RPCholesky   landmarks drawn one after the other, each with probability ∝ the diagonal of K−K̂
//	             so far; in blocks that are thinned by rejection, which does not change the distribution
//
// RPCholesky finds outliers and small clusters, which uniform landmarks miss. By its theory tr(K−K̂) is on average
// within a factor of 1+ε of the best approximation of rank k as soon as r ≥ k/ε + k·log(1/(εη)), where η is the best
// relative error of rank k. It does not draw points that depend on earlier landmarks, so F is as narrow as K allows.
// Nystrom does not form the columns that RPCholesky rejects, 12 to 15 % of all columns in the measurements below.
//
// # How to choose
//
// Iterations of preconditioned conjugate gradients, measured on MNIST with n = 20,000, λ = 0.01, a relative residual of
// τ = 1e-3 and r = 2,000, compared with the same number of random features:
//
//	                   λ_p = λ   λ_p = 10λ
//	random features      171        71
//	Nystrom               33        28
//	RPCholesky            30        26
//
// With n = 5,000 and r = 500 the three rows of the table are 207 and 82, 32 and 29, and 33 and 28. RPCholesky is
// therefore recommended for all data. On evenly spread data such as these, Nystrom is as good and a little faster.
// Random features are computed from the points alone and need no columns of K: use them to follow the paper of Avron,
// Clarkson and Woodruff (2017), or if a kernel value is very expensive.
//
// The condition number is at most 1+tr(K−K̂)/λ (CondBound), for any λ_p in [λ, λ+tr(K−K̂)]. More rank therefore helps
// until tr(K−K̂) is near λ. The bound is far above the condition number if K−K̂ has many eigenvalues of similar size.
//
// # Costs
//
//	flops     n·r², and the formation of r columns of K; RPCholesky also forms the rejected columns
//	memory    4nr bytes for F and 8r² for Extend; temporarily, with b = Options.Block,
//	          Nystrom:     2048r per thread
//	          RPCholesky:  4nr + 8nb + 8b(3r+2b) + 41n, and 2048·min(r, 512) per thread
//
// Each of P ranks computes n/P rows of F, and the terms 4nr and 8nb are divided by P. For each block of proposals,
// RPCholesky sends 8br/P bytes, where r is the current number of columns. Nystrom sends almost nothing. Each rank forms
// all of W, or of K(S,S).
//
// Seconds measured on two cores with OpenBLAS and K in float32 tiles: with n = 5,000 and r = 500, 0.1 (Nystrom) and
// 0.16 (RPCholesky); with n = 10,000 and r = 1,000, 0.55 and 0.7. If the columns are recomputed in float64, that takes
// another n·r·d multiply-adds. With n = 5,000, r = 500 and d = 784 the factor then took 0.8 and 1.2 seconds on two
// cores under a load of 30.
//
// # Precision
//
// F is computed in float64 and rounded to float32 once. K̂ is FFᵀ with the rounded F; Trace and Residual refer to this
// K̂ and are summed in float64.
//
// Nystrom rounds C to 48 bits, the sum of two float32 numbers; RPCholesky does the same with F until F is complete. The
// 48 bits are necessary. If residual columns were formed with an F rounded to 24 bits, the squares of interpolation
// weights would amplify the rounding errors, and on smooth kernels K−K̂ was observed to have eigenvalues of −10 times
// Rounding.
//
// Rounding errors of the columns or of the factorization would be amplified in the same way, so K−K̂ ≽ −eI with a known
// e needs a further measure. Both methods add a relative shift ν, four times that rounding error (1e-9 for 2,000
// landmarks), to the diagonal of W. Then the weights do not appear in the bound e (proof in certify.go), and nearly all
// of e is the rounding of F to float32. Because of the shift, K̂ differs from K at the landmarks by at most √(ν‖K‖₂)/2
// if the diagonal of K is 1.
//
// W may be singular, for example if points are duplicated. Nystrom drops landmarks that depend on others. RPCholesky
// accepts no pivot below 2⁻²⁰k(x, x). When no larger pivot is left, K̂ equals K up to the rounding of F, and RPCholesky
// stops.
//
// The certified bounds refer to the exact positive semi-definite K from which the columns differ by at most the
// EntryError of the Source. If K was rounded to float32 or 16 bits, its columns have no such bound: the rounded K may
// have negative eigenvalues of the size of the rounding error, K−K̂ may have several times as much, and CondBound then
// gives no bound. Use columns from the float64 matrix that method Exact of gram.Matrix returns: they cost n·r entries,
// in addition to the n²/2 entries that are stored.
//
// Results have the same bits for any number of threads and of ranks.
//
// # References
//
// C. K. I. Williams, M. Seeger, Using the Nyström method to speed up kernel machines, NIPS 13, 2001. Y. Chen, E. N.
// Epperly, J. A. Tropp, R. J. Webber, Randomly pivoted Cholesky: practical approximation of a kernel matrix with few
// entry evaluations, Comm. Pure Appl. Math. 78 (2025), doi:10.1002/cpa.22234, arXiv:2207.06503: the distribution of the
// landmarks and its theory. E. N. Epperly, J. A. Tropp, R. J. Webber, Embrace rejection: kernel matrix approximation by
// accelerated randomly pivoted Cholesky, arXiv:2410.03969: thinning. M. Díaz, E. N. Epperly, Z. Frangella, J. A. Tropp,
// R. J. Webber, Robust, randomized preconditioning for kernel ridge regression, arXiv:2304.12465: use as a
// preconditioner. Z. Frangella, J. A. Tropp, M. Udell, Randomized Nyström preconditioning, SIAM J. Matrix Anal. Appl.
// 44 (2023), doi:10.1137/21M1466244: the shift.
package lowrank
