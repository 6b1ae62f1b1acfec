// Package vecchia provides preconditioners for K+λI with a sparse inverse, for kernel matrices that are not of low
// rank:
//
//	M = FFᵀ + V,  V⁻¹ = GᵀG ≈ (ωR+λI)⁻¹,  R = K − FFᵀ.
//
// F, n×r, is a low-rank factor from a few landmarks (r may be 0). G is sparse, and lower triangular if the points are
// in an order π. Under a narrow kernel only neighboring points interact: K has no large eigenvalues that random
// features or landmarks could capture, but (K+λI)⁻¹ is nearly sparse, and GᵀG approximates it. If K has both large
// eigenvalues and a local remainder, F captures the former and G the latter.
//
// # The sparse inverse
//
// The conditioning set N_i of point i consists of k of the points that precede i in π. With J = N_i ∪ {i}, i last,
// row i of G is
//
//	g_i = z/√z_i,  (ωR+λI)_JJ z = e_i.
//
// Then G(ωR+λI)Gᵀ has unit diagonal. Among the matrices with its sparsity pattern, G minimizes the Kullback–Leibler
// divergence of N(0, (GᵀG)⁻¹) from N(0, ωR+λI) (Vecchia; Kolotilina and Yeremin, who call GᵀG a factorized sparse
// approximate inverse). k = n−1 and ω = 1 give M = K+λI; k = 0 gives a diagonal V.
//
// N_i is chosen in two steps. The candidates are the 3k points before i with the largest |K_ij|/√(K_ii K_jj). N_i
// consists of the k candidates with the largest |R_ij|/√((R_ii+λ/ω)(R_jj+λ/ω)). Without F, the k points of the first
// step are used directly.
//
// The damping ω in (0, 1] is for problems such as MNIST, where R is spread over many small eigenvalues that no
// neighbors explain. If R_ii is many times λ in such a problem, V is too large in every other direction without
// damping.
//
// # Application
//
// With H = GF in float32, and W = I+HHᵀ represented by precond.Woodbury,
//
//	M = G⁻¹WG⁻ᵀ,  M⁻¹ = GᵀW⁻¹G.
//
// An application takes 4nr+4nk multiply-adds for a column. M is positive definite for every choice of neighbors. M is
// defined by the stored G and H, both in float32; F is not needed after the construction. M equals FFᵀ+V up to
// rounding. G and H take 16n(k+1) + 4nr bytes.
//
// # Cost
//
// Finding the candidates (method Neighbors of gram.Matrix) reads the stored kernel matrix once; if K is recomputed,
// that costs one pass over K. Computing G then takes n(k²(d+r)/2 + k³/6 + 3kr) multiply-adds, distributed over all
// threads and ranks.
//
// # References
//
// A. V. Vecchia, Estimation and model identification for continuous spatial processes, J. R. Stat. Soc. B 50 (1988). L.
// Y. Kolotilina and A. Y. Yeremin, Factorized sparse approximate inverse preconditionings I, SIAM J. Matrix Anal. Appl.
// 14 (1993), doi:10.1137/0614004. F. Schäfer, M. Katzfuss, H. Owhadi, Sparse Cholesky factorization by Kullback–Leibler
// minimization, arXiv:2004.14455. Eagan Kaminetz and R. Webber, arXiv:2603.05709: partial Cholesky with Vecchia's
// approximation of the residual. Two other methods combine a low-rank matrix with a sparse remainder: P. Gyger, R.
// Furrer and F. Sigrist, arXiv:2507.05064 (VIF: inducing points with Vecchia's approximation of the residual process),
// and AFN, arXiv:2304.05460 (Nyström landmarks with a factorized sparse approximate inverse).
package vecchia
