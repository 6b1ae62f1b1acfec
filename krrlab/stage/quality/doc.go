// Package quality is the stage that judges the preconditioner M of A = K+λI that is configured (package pencil): an
// interval of κ(M⁻¹A) that holds with a stated confidence, and the iterations that follow from it beside those that
// conjugate gradients take.
//
// For small n the interval is compared with all eigenvalues of M⁻¹A by dense factorizations. Which number of iterations
// a tridiagonal of Lanczos predicts says lanczos.RitzIterations. For which λ_p of ZZᵀ+λ_pI is best see package lambdap,
// for several M package compare.
package quality
