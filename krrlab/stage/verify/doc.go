// Package verify checks an answer C of (K+λI)C = Y by plain loops over the formulas, in
// float64, sharing no code with what found it: no tiles, no BLAS, no kernel of package
// kernel. What it states is certain in exact arithmetic, and every number carries a bound of
// its own rounding.
//
//	Residual  ‖y_j−(K+λI)c_j‖₂ to ± a rounding bound
//	Cond      an interval for κ(K+λI), of confidence 1
//	Predict   f̃ at new points, with |f−f̃| ≤ √k(x,x)·‖r‖₂/(2√λ)
//	Model     all of it of a saved model, as lines, a table, a picture and JSON (stage.Stage)
//
// # Residual
//
// With u = 2⁻⁵³, entries of K wrong by at most δ (Error), sums of blocks of 256 and of at most
// n/256+1 blocks, and κ_max = max k(x,x),
//
//	|fl(r_ij) − r_ij| ≤ (δ + (n/256+260)·u·κ_max)·‖c_j‖₁ + 4u(|y_ij| + λ|c_ij|),
//
// from Higham's (3.5); the bound of the norm is √n times the first term and the norm of the
// second.
//
// # The prediction bound
//
// The minimizer f and f̃(x) = Σ_i C_ij k(x_i, x) differ by k_xᵀA⁻¹r_j, A = K+λI, and
// ‖A⁻¹k_x‖₂ ≤ √k(x,x)/(2√λ), since k_xk_xᵀ ≼ k(x,x)·K and t/(t+λ)² ≤ 1/(4λ). So
//
//	|f_j(x) − f̃_j(x)| ≤ √k(x,x)·‖r_j‖₂/(2√λ),
//
// and for two classes a and b the same with r_a−r_b, as f_a−f_b answers y_a−y_b. A label is
// proved if the gap of its decision value to every other is larger than that, open if not. The
// bound is loose; a tolerance a tenth as large makes it a tenth.
//
// # The condition number
//
// K is positive semi-definite, as every kernel here is, so λ ≤ λ_min(A) ≤ λ+θ for any Rayleigh
// quotient θ of K: the least Ritz value of some Lanczos steps. For any positive v,
//
//	λ_max(K) ≤ λ_max(|K|) ≤ max_i (|K|v)_i/v_i
//
// (Collatz and Wielandt), and power steps of |K| from v = 1 bring this to the Rayleigh quotient
// from below where k ≥ 0. In all κ(A) ≤ 1 + n·κ_max/λ.
//
// # References
//
// N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, chapter 3.
// R. A. Horn, C. R. Johnson, Matrix Analysis, 2nd ed., Cambridge 2013, theorem 8.1.26 and
// corollary 8.1.31.
package verify
