// Package verify checks an answer C of (K+λI)C = Y by plain loops over the formulas in float64. It shares no code with
// the solver: no tiles, no BLAS, no kernel of package kernel. Its statements are certain in exact arithmetic, and every
// number has a bound of its rounding error.
//
//	Residual  ‖y_j−(K+λI)c_j‖₂ to ± a rounding bound
//	Cond      an interval for κ(K+λI), of confidence 1
//	Predict   f̃ at new points, with |f−f̃| ≤ √k(x,x)·‖r‖₂/(2√λ)
//	Model     all of these for a saved model, as lines, a table, a figure and JSON (stage.Stage)
//
// # Residual
//
// Let u = 2⁻⁵³, let δ (Matrix.EntryError) bound the error of each entry of K, and let κ_max = max k(x,x). Sums are
// formed in blocks of 256 terms, and there are at most n/256+1 blocks. Then
//
//	|fl(r_ij) − r_ij| ≤ (δ + (n/256+260)·u·κ_max)·‖c_j‖₁ + 4u(|y_ij| + λ|c_ij|),
//
// by Higham's (3.5). The bound of the norm is √n times the first term plus the norm of the second.
//
// # The prediction bound
//
// The minimizer f and f̃(x) = Σ_i C_ij k(x_i, x) differ by k_xᵀA⁻¹r_j, A = K+λI, and
// ‖A⁻¹k_x‖₂ ≤ √k(x,x)/(2√λ), since k_xk_xᵀ ≼ k(x,x)·K and t/(t+λ)² ≤ 1/(4λ). So
//
//	|f_j(x) − f̃_j(x)| ≤ √k(x,x)·‖r_j‖₂/(2√λ),
//
// and for two classes a and b the same bound holds with r_a−r_b, because f_a−f_b is the answer for y_a−y_b. A label is
// proved if the gap of its decision value to every other one exceeds the bound; otherwise it is open. The bound is
// loose, and proportional to the tolerance of the solve.
//
// # The condition number
//
// K is positive semi-definite, as every kernel here is, so that λ ≤ λ_min(A) ≤ λ+θ for any Rayleigh quotient θ of K. θ
// is the smallest Ritz value of some Lanczos steps. For any positive v,
//
//	λ_max(K) ≤ λ_max(|K|) ≤ max_i (|K|v)_i/v_i
//
// (Collatz and Wielandt). Power steps of |K| from v = 1 bring this upper bound close to the Rayleigh quotient, which is
// a lower bound, if k ≥ 0. In every case κ(A) ≤ 1 + n·κ_max/λ.
//
// # References
//
// N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, chapter 3.
// R. A. Horn, C. R. Johnson, Matrix Analysis, 2nd ed., Cambridge 2013, theorem 8.1.26 and
// corollary 8.1.31.
package verify
