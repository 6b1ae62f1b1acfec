// Package bound says how far an answer C of (K+λI)C = Y, and what it predicts, can be from the solution C*.
//
// With A = K+λI, e_j = c_j* − c_j and f_j(x) = k_xᵀc_j, as k_xᵀA⁻¹k_x ≤ k(x, x),
//
//	|f_j*(x) − f_j(x)| ≤ √k(x, x)·‖e_j‖_A  for every x.
//
// So a label, the largest f_j(x), is that of the solution as soon as it leads every other by more than the two
// bounds (Open): an iteration may end when few labels are open (Sample), long before its residual is small.
//
// ‖e_j‖_A is bounded while conjugate gradients run (Basis.Errors), by the Gauss–Radau rule where a bound
// 0 < μ ≤ λ_min(M⁻¹A) is known (LambdaMin), and else by ‖r_j‖₂/√λ; and when they have ended (Basis.Final), from the
// residual recomputed. Errors says what each of these covers. Where that residual is taken with K as stored, Rows of it
// in float64 say how far it is off.
//
// # References
//
// G. Meurant and P. Tichý, On computing quadrature-based bounds for the A-norm of the error in conjugate
// gradients, Numer. Algorithms 62 (2013), doi:10.1007/s11075-012-9591-9.
package bound
