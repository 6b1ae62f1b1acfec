// Package bound bounds the distance of an answer C of (K+λI)C = Y, and of its predictions, from the exact solution C*.
//
// Let A = K+λI, e_j = c_j* − c_j and f_j(x) = k_xᵀc_j. Since k_xᵀA⁻¹k_x ≤ k(x, x),
//
//	|f_j*(x) − f_j(x)| ≤ √k(x, x)·‖e_j‖_A  for every x.
//
// A predicted label is the index j of the largest f_j(x). It is therefore the label of the exact solution if its f_j(x)
// exceeds every other value by more than the sum of the two bounds. Otherwise the label is undecided (UndecidedRows).
// An iteration may end when few labels are undecided (LabelSample), which can be long before its residual is small.
//
// While conjugate gradients run, a Monitor bounds ‖e_j‖_A by the Gauss–Radau rule if a bound 0 < μ ≤ λ_min(M⁻¹A) is
// known (LambdaMin), and by ‖r_j‖₂/√λ otherwise. After the iteration has ended, Problem.AnswerErrors bounds ‖e_j‖_A by
// the true residual. The documentation of Errors describes which errors each bound covers. If the true residual is
// computed with the stored K, ResidualRows estimates its error from rows of K in float64.
//
// # References
//
// G. Meurant and P. Tichý, On computing quadrature-based bounds for the A-norm of the error in conjugate
// gradients, Numer. Algorithms 62 (2013), doi:10.1007/s11075-012-9591-9.
package bound
