// Package bound bounds the distance of an answer C of (K+λI)C = Y, and of its predictions, from the solution C*.
//
// Let A = K+λI, e_j = c_j* − c_j and f_j(x) = k_xᵀc_j. Since k_xᵀA⁻¹k_x ≤ k(x, x),
//
//	|f_j*(x) − f_j(x)| ≤ √k(x, x)·‖e_j‖_A  for every x.
//
// So a label, the largest f_j(x), is that of the solution as soon as it leads every other by more than their two
// bounds; until then it is open (Open). An iteration may end when few labels are open (Sample), long before its
// residual is small.
//
// While conjugate gradients run, Basis.Errors bounds ‖e_j‖_A by the Gauss–Radau rule if a bound
// 0 < μ ≤ λ_min(M⁻¹A) is known (LambdaMin), and otherwise by ‖r_j‖₂/√λ. When they have ended, Basis.Final bounds it
// by the recomputed residual. Errors says what each of these covers. If that residual is taken with K as stored,
// Rows estimates its error from rows of K in float64.
//
// # References
//
// G. Meurant and P. Tichý, On computing quadrature-based bounds for the A-norm of the error in conjugate
// gradients, Numer. Algorithms 62 (2013), doi:10.1007/s11075-012-9591-9.
package bound
