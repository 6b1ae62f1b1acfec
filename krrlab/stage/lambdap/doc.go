// Package lambdap judges a preconditioner M = ZZᵀ+λ_pI for A = K+λI and chooses its ridge λ_p.
//
// # Choosing λ_p
//
// λ_p is the preconditioner's own: the answer does not depend on it. With η = ‖K−ZZᵀ‖₂,
//
//	κ(M⁻¹A) ≤ max(1, (λ+η)/λ_p) · max(1, (λ_p+η)/λ)
//
// (Bound): (λ+η)/λ_p up to λ−η, (1+η/λ)(1+η/λ_p) from there to λ+η, (λ_p+η)/λ beyond. It is
// least, 1+2η/λ, at λ_p = λ+η where η > 0. The bound holds for any Z that far from K
// and is pessimistic for this one: the best λ_p is often far below λ+η, and only the spectrum
// knows. The stage finds out: for each λ_p of a grid an interval of κ by the Lanczos process on
// the pencil, and the iterations that PCG takes. One eigendecomposition ZᵀZ = VΣ²Vᵀ serves
// all λ_p, and all of them share each product with K, so a sweep of a dozen λ_p takes as
// long as two or three of them alone.
//
// An iteration costs the same for every λ_p, so the best λ_p is the one with the fewest
// iterations. The cost of an iteration and of the set-up changes with s; Seconds adds
// them up.
//
// # References
//
// H. Avron, K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using
// sketching and preconditioning, SIAM J. Matrix Anal. Appl. 38 (2017),
// doi:10.1137/16M1105396: section 6.3 (λ_p). O. Axelsson, Iterative Solution Methods, Cambridge 1994,
// chapter 13.
package lambdap
