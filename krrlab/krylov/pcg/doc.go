// Package pcg solves AX = B, where A is a symmetric positive definite n×n matrix and B is n×t, by preconditioned
// conjugate gradients for all t right-hand sides at once. Solve runs a separate recurrence for every column, and
// SolveBlock runs one recurrence for the whole block. The package uses A and the preconditioner M ≈ A through one
// method each, and does not depend on kernels.
//
// # The method
//
// For every column y = b_j, from x = 0 or a guess, with r = y − Ax, z = M⁻¹r, p = z
// and ρ = rᵀz (Saad, algorithm 9.1; it is line 9 of Algorithm 1
// of Avron, Clarkson and Woodruff 2017):
//
//	α = ρ / pᵀAp
//	x ← x + αp
//	r ← r − αAp
//	z = M⁻¹r
//	β = rᵀz / ρ,  ρ ← rᵀz
//	p ← z + βp
//
// Each column has its own α and β, but one call of Operator.MulTo multiplies by A for all columns: if A is large, the
// cost is dominated by reading A, which is read once per iteration. A column that has ended is frozen: its x no longer
// changes, and the column is removed from the blocks that are multiplied.
//
// # Stopping test
//
// A column converges when ‖y−Ax‖₂ ≤ τ‖y‖₂, τ = Options.Tol. In the loop, r is the recursively updated residual, which
// drifts from the true residual because of rounding. At the end, therefore, the true residual y−Ax is recomputed, with
// Options.Exact if it is set. If the recursive residual of a column has converged but its true residual has not, the
// column is restarted from the true residual, with a smaller target if the tolerance was missed by little. Restarts
// are repeated as long as they help, and a restart that made the residual larger is undone.
//
// If Exact differs from A, the restarts are iterative refinement: they correct for a matrix A that is stored in lower
// precision. With Options.ReachableReduction, the true residual is recomputed as soon as products with A are too
// inaccurate to reduce it further. Status Converged therefore always means that the returned residual TrueRelRes plus
// its Rounding is at most τ. A column that could not reach τ is Inaccurate. The outcome of a loop is a Status. Only
// data that are not finite, the end of a context, and the errors of operators and monitors are returned as errors.
//
// # Number of iterations
//
// After k iterations the error is, in exact arithmetic (Shewchuk; Saad, 6.128),
//
//	‖x_k−x‖_A ≤ 2((√κ−1)/(√κ+1))^k ‖x_0−x‖_A ≤ ε‖x_0−x‖_A
//	for k ≥ (√κ/2)·ln(2/ε),  κ = λ_max/λ_min of M⁻¹A,
//
// so IterationBound returns this k. It bounds the error in the A-norm, while the stopping test uses the residual in the
// 2-norm. For Solve, Result.Cond estimates κ and Result.Ritz estimates the eigenvalues of M⁻¹A. Both use only the α
// and β.
//
// # Distance to the solution
//
// Conjugate gradients minimize the A-norm of the error, which also bounds the error of predictions: |k_xᵀ(c−c_k)| ≤
// √k(x,x)·‖c−c_k‖_A for A = K+λI. Each step reduces the squared A-norm by α_kρ_k, where ρ_k = r_kᵀM⁻¹r_k (Hestenes and
// Stiefel 1952), so the decrease over later steps is a lower bound of the error. An upper bound follows from a lower
// bound μ of λ_min(M⁻¹A), Options.LambdaMin, by the Gauss–Radau rule:
//
//	‖e_k‖_A² ≤ γ_kρ_k,  γ_0 = 1/μ,  γ_{k+1} = (γ_k−α_k)/(μ(γ_k−α_k)+β_k),
//
// and, in SolveBlock, by its block form. History.Decrease and History.ErrorBounds return both bounds, at negligible
// cost. For a kernel matrix of 1,000 points, with a Nyström preconditioner and the exact μ, the upper bound of ‖e_k‖_A²
// exceeded it by a factor of 1.4 to 1.9 in every iteration; ρ_k/μ exceeded it by 7 to 13, and ‖r_k‖₂²/λ by 16 to 67.
//
// # Cost
//
// An iteration takes one MulTo, one SolveTo and five passes over blocks of n×t. The passes run on all threads, in
// pieces of rowBlock rows. The sums of the pieces are added in row order, so the results have the same bits for any
// number of threads. Memory is 4nt numbers: X, R, P and W, where W contains first AP and then M⁻¹R. No iteration
// allocates, except that the history grows in slabs of 1,024 iterations.
//
// # When to use block conjugate gradients
//
// In Solve, every column searches its own Krylov space. SolveBlock searches the sum of these spaces for all columns,
// with the same products: after k iterations, each x_j is the point nearest to the solution in the A-norm within
//
//	span{M⁻¹B, (M⁻¹A)M⁻¹B, …, (M⁻¹A)^(k-1)M⁻¹B},  of up to kt dimensions,
//
// and is never farther from the solution than the iterate of Solve. O'Leary's bound has κ replaced by λ_n/λ_t: the t−1
// smallest eigenvalues of M⁻¹A (or the largest, or some of both) no longer matter. The gain is therefore large if a few
// eigenvalues slow the iteration down, that is, with weak preconditioners and many columns. It is small if M⁻¹A is
// well-conditioned. The following table shows the iterations of Solve and SolveBlock to τ = 1e-3, for a Gaussian kernel
// of 500 points of 8 features and one column of ±1 per class, λ = 0.01, with a Nyström preconditioner of s points:
//
//	         κ(M⁻¹A)    t = 3      t = 10     t = 30
//	s = 0       3000   86 → 58    81 → 36    82 → 22
//	s = 50       380   58 → 50    56 → 35    56 → 20
//	s = 200      130   35 → 32    34 → 24    34 → 13
//
// An iteration of SolveBlock costs the same product and solve, and BlockFlops operations instead of five passes: on two
// threads of a server (Zen 5), at n = 60,000, some 9 ms instead of 4 for t = 10, and 37 instead of 14 for t = 40. Block
// conjugate gradients are faster if
//
//	(iterations of SolveBlock)·(product + solve + BlockFlops at that rate)
//	    < (iterations of Solve)·(product + solve).
//
// This is nearly always true if reading or forming A dominates the cost and A is not yet well preconditioned. Two facts
// favor Solve. First, Solve removes converged columns from the products, whereas SolveBlock keeps their directions.
// Solve is therefore better for columns of very different difficulty if the cost of a product is arithmetic rather than
// reading A. Second, for t = 1 the two methods agree up to rounding, and Solve is cheaper.
//
// # References
//
// M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear
// systems, J. Res. NBS 49 (1952), doi:10.6028/jres.049.044. Y. Saad, Iterative
// Methods for Sparse Linear Systems, 2nd ed., SIAM 2003: sections 6.7 (CG and the
// Lanczos tridiagonal) and 9.2 (preconditioned). J. R. Shewchuk, An introduction to
// the conjugate gradient method without the agonizing pain, CMU-CS-94-125. H. A. van
// der Vorst and Q. Ye, Residual replacement strategies for Krylov subspace iterative
// methods, SIAM J. Sci. Comput. 22 (2000), doi:10.1137/S1064827599353865. H. Avron,
// K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using sketching and
// preconditioning, SIAM J. Matrix Anal. Appl. 38 (2017), doi:10.1137/16M1105396:
// Algorithm 1, and the remark on repetition after Theorem 6 for MedianByNorm.
//
// For the error: G. Meurant and P. Tichý, On computing quadrature-based bounds for the A-norm of the
// error in conjugate gradients, Numer. Algorithms 62 (2013), doi:10.1007/s11075-012-9591-9. Z. Strakoš and
// P. Tichý, On error estimation in the conjugate gradient method and why it works in finite precision
// computations, Electron. Trans. Numer. Anal. 13 (2002) 56–80. J. Zimmerling, V. Druskin and V. Simoncini,
// Monotonicity, bounds and acceleration of block Gauss and Gauss–Radau quadrature for computing Bᵀφ(A)B,
// J. Sci. Comput. (2025), doi:10.1007/s10915-025-02799-z.
//
// For SolveBlock: D. P. O'Leary, The block conjugate gradient algorithm and related
// methods, Linear Algebra Appl. 29 (1980), doi:10.1016/0024-3795(80)90247-5. A. A.
// Dubrulle, Retooling the method of block conjugate gradients, Electron. Trans. Numer.
// Anal. 12 (2001) 216–233: BCGrQ. Y. Yamamoto, Y. Nakatsukasa, Y. Yanagisawa, T. Fukaya,
// Roundoff error analysis of the CholeskyQR2 algorithm, ibid. 44 (2015) 306–326.
package pcg
