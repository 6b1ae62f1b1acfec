// Package verify checks an answer C of (K+λI)C = Y by plain loops over the formulas in float64. It shares no code with
// the solver: no tiles, no BLAS, no kernel of package kernel. Its bounds are proved, and every number has a bound of
// its rounding error. K is the kernel matrix, λ the ridge, Y the targets, n×t with columns y_j, and C the coefficients.
//
//	Residual  ‖y_j−(K+λI)c_j‖₂ with a bound of its rounding error
//	Cond      an interval for κ(K+λI), of confidence 1
//	Predict   f̃ at new points, with |f−f̃| ≤ √k(x,x)·‖r‖₂/(2√λ)
//	Model     all of these for a saved model, as lines, a table, a figure and JSON (stage.Stage)
//
// # Residual
//
// Let u = 2⁻⁵³ be the unit roundoff, δ (Matrix.EntryError) a bound of the error of each entry of K, k_max = max k(x,x),
// and r_j = y_j−(K+λI)c_j the residual, whose computed value is fl(r_j). Sums are formed in blocks of 256 terms, and
// there are at most n/256+1 blocks. Then
//
//	|fl(r_ij) − r_ij| ≤ (δ + (n/256+260)·u·k_max)·‖c_j‖₁ + 4u(|y_ij| + λ|c_ij|)
//
// by inequality (3.5) of Higham. The bound for the norm of r_j is √n times the first term plus the norm of the second.
//
// # The prediction bound
//
// Let f_j be the exact solution, f̃_j(x) = Σ_i C_ij k(x_i, x) the prediction and k_x the vector of the k(x_i, x). Then
// f_j(x)−f̃_j(x) = k_xᵀA⁻¹r_j with A = K+λI, and ‖A⁻¹k_x‖₂ ≤ √k(x,x)/(2√λ), since k_xk_xᵀ ≼ k(x,x)·K and
// μ/(μ+λ)² ≤ 1/(4λ) for each eigenvalue μ of K. So
//
//	|f_j(x) − f̃_j(x)| ≤ √k(x,x)·‖r_j‖₂/(2√λ),
//
// and for two classes a and b the same bound holds with r_a−r_b, because f_a−f_b is the answer for y_a−y_b. A label is
// proved if its decision value exceeds every other one by more than the bound; otherwise the label is open. The bound
// is loose, and proportional to the tolerance of the solve.
//
// # The condition number
//
// K is assumed to be positive semi-definite, as it is for every built-in kernel, so that λ ≤ λ_min(A) ≤ λ+θ for any
// Rayleigh quotient θ of K. θ is the smallest Ritz value of some Lanczos steps. For any positive vector v,
//
//	λ_max(K) ≤ λ_max(|K|) ≤ max_i (|K|v)_i/v_i
//
// (Collatz and Wielandt), where |K| has the absolute values of the entries. If k ≥ 0, power steps of |K| from a vector
// of ones bring this upper bound close to the Rayleigh quotient of v, which is a lower bound. In every case κ(A) ≤
// 1 + n·k_max/λ.
//
// # References
//
// N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, chapter 3.
// R. A. Horn, C. R. Johnson, Matrix Analysis, 2nd ed., Cambridge 2013, theorem 8.1.26 and
// corollary 8.1.31.
package verify
