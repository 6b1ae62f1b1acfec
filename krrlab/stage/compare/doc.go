// Package compare is the stage that judges preconditioners of K+λI side by side: built-in ones, each with its own rank
// and ridge, and user-defined ones, each drawn several times, beside M = I.
//
// All iterate on one right-hand side b, for t > 1 the sum of the columns with random signs, side by side (package
// pencil). The Lanczos processes that give the interval of κ where M_c can draw normal vectors of covariance M_c have
// the quadrature
//
//	tr f(M⁻¹A) ≈ n Σ_i τ_i² f(θ_i),   θ_i the Ritz values, τ_i the first entries of T's eigenvectors,
//
// for f(x) = x and ln x (Ubaru, Chen and Saad, SIAM J. Matrix Anal. Appl. 38 (2017), DOI 10.1137/16M1104974), from
// which follows Kaporin's number ln β = n·ln(tr(M⁻¹A)/n) − ln det(M⁻¹A) (Kaporin, Numer. Linear Algebra Appl. 1
// (1994)). Up to Options.ExactBelow points all are exact, by all eigenvalues. Where ln det M is known ln det(K+λI) has an
// interval (lanczos.LogDet), and so has −2 ln p(y), y ~ N(0, K+λI), of one target.
//
// The error after k iterations is bounded from above in the norm of A: by ‖r_k‖₂/√λ, λ less what K as stored may be
// off, and where 0 < μ ≤ λ_min(M⁻¹A) is known also by the Gauss–Radau rule (package pcg).
//
// Preconditioners that do not fit into the memory together are judged in groups. One that fails is left out, with the
// reason: M⁻¹ that is not symmetric, not definite, not finite, of another order, or not the same when asked for again.
package compare
