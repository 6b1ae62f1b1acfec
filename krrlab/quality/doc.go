// Package quality judges a preconditioner M of A = K+λI: an interval of κ(M⁻¹A) that holds with a stated confidence,
// and the iterations that follow from it beside those that conjugate gradients take.
//
// The interval is that of the Lanczos process on the pencil (A, M) from a random start (package lanczos), widened by
// the error of K as stored; for small n it is compared with all eigenvalues of M⁻¹A by dense factorizations. Of an M
// of which only the inverse is known, the Ritz values of conjugate gradients bound κ from below. Which number of
// iterations a tridiagonal of Lanczos predicts says lanczos.RitzIterations.
//
// For which λ_p of ZZᵀ+λ_pI is best see package lambdap.
package quality
