// Package vecchia holds preconditioners for K+λI whose inverse is sparse where K has no low rank:
//
//	M = FFᵀ + V,  V⁻¹ = GᵀG ≈ (ωR+λI)⁻¹,  R = K − FFᵀ,
//
// with a factor F, n×r, of few landmarks (r may be 0) and a sparse G that is lower triangular in an order π of the
// points. A narrow kernel sees neighbors only: its K has no large eigenvalues that features or landmarks could
// capture, but (K+λI)⁻¹ is nearly sparse, and G holds it. Where K has both large eigenvalues and a remainder that
// is local, F takes the former and G the latter.
//
// # The inverse of what the factor leaves
//
// With N_i the neighbors of point i, k of those before it in π, and J = N_i ∪ {i}, i last, row i of G is
//
//	g_i = z/√z_i,  (ωR+λI)_JJ z = e_i,
//
// so that G(ωR+λI)Gᵀ has the diagonal 1, and G minimizes the Kullback–Leibler divergence of N(0, (GᵀG)⁻¹) from
// N(0, ωR+λI) among the matrices of its pattern (Vecchia; Kolotilina and Yeremin, who call it a factorized sparse
// approximate inverse). k = n−1 and ω = 1 make M = K+λI, k = 0 makes V a diagonal.
//
// N_i are the points of largest |R_ij|/√((R_ii+λ/ω)(R_jj+λ/ω)) among the 3k before i of largest |K_ij|/√(K_ii K_jj)
// (without F these themselves). The damping ω in (0, 1] is for problems like MNIST, whose R is spread over many small
// eigenvalues that no neighbors explain: there R's diagonal of many λ makes V too large in every other direction.
//
// # Application
//
// With H = GF in float32, and W = I+HHᵀ held by precond.Woodbury,
//
//	M = G⁻¹WG⁻ᵀ,  M⁻¹ = GᵀW⁻¹G:
//
// 4nr+4nk multiply-adds for a column, and M is positive definite whatever was left out of it. M is defined by G and H
// as they are stored, in float32, and F plays no part any more; they are near FFᵀ+V to rounding. 16n(k+1) + 4nr bytes.
//
// # Cost
//
// One reading of K as it is stored finds the neighbors (Matrix.Neighbors of package gram), and takes a pass over K
// where that is recomputed. Then n(k²(d+r)/2 + k³/6 + 3kr) multiply-adds make G, on all threads and ranks.
//
// # References
//
// A. V. Vecchia, Estimation and model identification for continuous spatial processes, J. R. Stat. Soc. B 50 (1988).
// L. Y. Kolotilina and A. Y. Yeremin, Factorized sparse approximate inverse preconditionings I, SIAM J. Matrix Anal.
// Appl. 14 (1993), doi:10.1137/0614004. F. Schäfer, M. Katzfuss, H. Owhadi, Sparse Cholesky factorization by
// Kullback–Leibler minimization, arXiv:2004.14455. Eagan Kaminetz and R. Webber, arXiv:2603.05709: partial Cholesky with
// Vecchia's approximation of the residual. Low rank and a sparse remainder are combined likewise by P. Gyger, R. Furrer
// and F. Sigrist, arXiv:2507.05064 (VIF: inducing points with Vecchia's approximation of the residual process), and by
// AFN, arXiv:2304.05460 (Nyström landmarks with a factorized sparse approximate inverse).
package vecchia
