// Package compare is the stage that judges several preconditioners of K+λI together. They are built-in ones, each with
// its own rank and ridge, and user-defined ones, each sampled several times, and M = I for comparison.
//
// All iterate together on one right-hand side b (package pencil). For t > 1 targets, b is the sum of their columns with
// random signs. If M can sample normal vectors of covariance M, Lanczos processes give the interval of κ(M⁻¹A). They
// also have the quadrature
//
//	tr f(M⁻¹A) ≈ n Σ_i τ_i² f(θ_i),   θ_i the Ritz values, τ_i the first entries of T's eigenvectors,
//
// for f(x) = x and ln x (Ubaru, Chen and Saad, SIAM J. Matrix Anal. Appl. 38 (2017), DOI 10.1137/16M1104974). Kaporin's
// number ln β = n·ln(tr(M⁻¹A)/n) − ln det(M⁻¹A) follows from it (Kaporin, Numer. Linear Algebra Appl. 1 (1994)). Up to
// Options.MaxExactN points, all of these are exact, from all eigenvalues. If ln det M is known, ln det(K+λI) has an
// interval (lanczos.LogDet); for one target, so has −2 ln p(y), y ~ N(0, K+λW⁻¹), where W are
// the weights of the rows, and y and K are not multiplied by them.
//
// The error after k iterations has upper bounds in the norm of A. One is ‖r_k‖₂/√λ, with λ reduced by the error of the
// stored K. If a positive lower bound μ ≤ λ_min(M⁻¹A) is known, the Gauss–Radau rule gives another one (package pcg).
//
// Preconditioners that do not fit into the memory together are judged in groups. A preconditioner that fails is
// excluded, and the result states the reason: M⁻¹ is not symmetric, not definite, not finite, of a different order, or
// differs between two applications to the same vector.
package compare
