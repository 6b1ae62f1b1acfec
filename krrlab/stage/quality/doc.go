// Package quality is the stage that judges the configured preconditioner M of A = K+λI (package pencil). It computes an
// interval of κ(M⁻¹A) that holds with a stated confidence, and compares the iterations that follow from it with those
// of conjugate gradients.
//
// For small n the interval is compared with all eigenvalues of M⁻¹A, from dense factorizations. The documentation of
// lanczos.RitzIterations explains how iterations are predicted from a Lanczos tridiagonal. Package lambdap finds the
// best λ_p of ZZᵀ+λ_pI, and package compare judges several M.
package quality
