// Package direct solves (K+λI)C = Y by a dense Cholesky factorization, in float64 or in float32
// with refinement, and proves its residual.
//
// # When
//
// K+λI = LLᵀ costs n³/3 multiplications after the n²d/2 of K, for any λ and number of right-hand sides. The cost does
// not depend on how the eigenvalues of K decay, so it is the safe choice up to a few thousand points. Where they decay
// fast an iterative solve takes less (package plan predicts which). It is also the reference for other solvers.
//
// # Precision
//
// Float64 factors in float64, 8n² bytes. Float32Refined factors in float32, half the
// memory and half the time, and corrects the answer by the residual taken in float64,
//
//	R = Y − (K+λI)C,  LLᵀΔ = R,  C ← C + Δ,
//
// which contracts the error by about ‖E‖₂/λ a round, E being what float32 makes of K and
// of its factor: it needs λ well above 2⁻²⁴·√n·‖K‖₂, and says so if it stalls. Float64
// does the same rounds if the first residual misses the tolerance.
//
// K is formed in one n×n array, lower triangle only, and factored in place; there is
// never another. Every residual is taken with kernel values formed again, in float64,
// tile by tile (gram.Matrix.Exact), so the residual reported is that of the problem, not
// of what was factored.
//
// # References
//
// N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002,
// chapters 10 (Cholesky) and 12 (iterative refinement).
package direct
