// Package direct solves (K+λI)C = Y by a dense Cholesky factorization, in float64 or in float32 with refinement, and
// returns a certain bound of the residual.
//
// # When to use it
//
// Computing K+λI = LLᵀ takes n³/3 multiplications, and K takes n²d/2, for any λ and number of right-hand sides. The
// cost does not depend on the decay of the eigenvalues of K, so the method is the safe choice for up to a few thousand
// points. If the eigenvalues decay fast, an iterative solve is faster (package stage/plan predicts which method is).
// The tests of other solvers use this package as the reference.
//
// # Precision
//
// Float64 factors in float64 and needs 8n² bytes. Float32Refined factors in float32, which needs half the memory and
// half the time, and corrects the answer by means of the residual in float64,
//
//	R = Y − (K+λI)C,  LLᵀΔ = R,  C ← C + Δ.
//
// Each round reduces the error by a factor of about ‖E‖₂/λ, where E contains the errors of K and of its factor in
// float32. The method therefore needs λ well above 2⁻²⁴·√n·‖K‖₂, and returns the status Stagnated if it stalls. Float64
// performs the same rounds if the first residual misses the tolerance.
//
// K is formed in one n×n array, the lower triangle only, and factored in place. No second array of this size is used
// unless the kernel is expensive and the memory suffices to store K for the residuals. Otherwise every residual
// recomputes the kernel values in float64, tile by tile (gram.Matrix.Exact). The reported residual is therefore the
// residual of the problem, and not the residual for the factored matrix.
//
// # References
//
// N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002,
// chapters 10 (Cholesky) and 12 (iterative refinement).
package direct
