// Package lambdap measures a preconditioner M = ZZᵀ+λ_pI for A = K+λI as a function of its ridge λ_p, and chooses λ_p.
// The columns of Z (n×s) are random features or the factor of landmarks, with ZZᵀ ≈ K.
//
// # Choosing λ_p
//
// λ_p is a parameter of the preconditioner only: the answer does not depend on it. With η = ‖K−ZZᵀ‖₂,
//
//	κ(M⁻¹A) ≤ max(1, (λ+η)/λ_p) · max(1, (λ_p+η)/λ)
//
// (Bound). The bound is (λ+η)/λ_p for λ_p up to λ−η, (1+η/λ)(1+η/λ_p) between λ−η and λ+η, and (λ_p+η)/λ above. It has
// its minimum 1+2η/λ at λ_p = λ+η, if η > 0. The bound holds for any Z at this distance from K, and is pessimistic for
// a particular one: the best λ_p is often far below λ+η, and only the spectrum of M⁻¹A determines it. The stage
// measures, for each λ_p of a grid, an interval of κ by the Lanczos process for the pencil (A, M), and the iterations
// of preconditioned conjugate gradients (PCG). One eigendecomposition ZᵀZ = VΣ²Vᵀ serves all λ_p, and all of them share
// each product with K, so that a sweep of a dozen λ_p takes as long as two or three of them alone.
//
// An iteration costs the same for every λ_p, so that the best λ_p is the one with the fewest iterations. The costs of
// an iteration and of the set-up change with s; Point.Seconds includes both.
//
// # References
//
// H. Avron, K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using
// sketching and preconditioning, SIAM J. Matrix Anal. Appl. 38 (2017),
// doi:10.1137/16M1105396: section 6.3 (λ_p). O. Axelsson, Iterative Solution Methods, Cambridge 1994,
// chapter 13.
package lambdap
