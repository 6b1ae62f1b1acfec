// Package compare is the stage that judges several preconditioners M of A = K+λI together: built-in and user-defined
// ones, each with its own rank and ridge and drawn several times with different random numbers, and M = I for
// comparison.
//
// All iterate together on one right-hand side b (package pencil). For t > 1 targets, b is the sum of their columns with
// random signs. If M has a method to sample normal vectors with the covariance M, Lanczos processes give an interval of
// κ(M⁻¹A). They also give the quadrature
//
//	tr f(M⁻¹A) ≈ n Σ_i τ_i² f(θ_i)
//
// for f(x) = x and ln x, where θ_i are the Ritz values and τ_i the first entries of the eigenvectors of the tridiagonal
// matrix of the process (Ubaru, Chen and Saad, SIAM J. Matrix Anal. Appl. 38 (2017), DOI 10.1137/16M1104974). Kaporin's
// number ln β = n·ln(tr(M⁻¹A)/n) − ln det(M⁻¹A) follows from both (Kaporin, Numer. Linear Algebra Appl. 1 (1994)). Up
// to Options.MaxExactN points, all of these are exact, from all eigenvalues. If ln det M is known, the result has an
// interval of ln det(K+λI) (lanczos.LogDet). For a single target y it also has an interval of −2 ln p(y) with y ~ N(0,
// K+λW⁻¹), where W is the diagonal matrix of the weights of the rows. In this formula y and K are not multiplied by the
// weights.
//
// The error after k iterations has two upper bounds in the norm of A. One is ‖r_k‖₂/√λ, with the residual r_k and with
// λ reduced by the error of the stored K. If a positive lower bound μ ≤ λ_min(M⁻¹A) is known, the Gauss–Radau rule
// gives the other one (package pcg).
//
// Preconditioners that do not fit into the memory together are judged in groups. A preconditioner that fails is
// excluded, and the result states the reason: M⁻¹ is not symmetric, not positive definite, not finite, of a different
// order, or has two different products with the same vector.
package compare
