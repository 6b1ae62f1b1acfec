// Package sketchsize finds how many random features s a preconditioner ZZᵀ+λ_pI needs, by
// doubling s until a test of Z accepts (section 5 of Avron, Clarkson and Woodruff).
//
// # The tests
//
// Kappa is the practical one: it accepts where the upper end of κ(M⁻¹A)'s interval is at
// most the target. A = K+λI, M = ZZᵀ+λ_pI; the interval comes from the Lanczos process on the
// pencil (package lanczos), some 20 to 60 products with A and solves with M.
//
// Theorem7 is the paper's, for λ_p = λ and with any constants (θ, α, γ): with P the
// projector on the eigenvectors of ZZᵀ whose eigenvalues exceed θλ, W an orthonormal basis of
// its range,
//
//  1. ‖(I−P)K(I−P)‖₂ ≤ αλ,
//  2. the eigenvalues of (WᵀKW, WᵀZZᵀW) lie in [1−γ, 1+γ].
//
// Test.Bound is the κ that follows. With ZᵀZ = VΣ²Vᵀ, W = ZV_rΣ_r⁻¹ and WᵀZZᵀW = Σ_r² is
// diagonal, so condition 2 asks for the spectrum of Σ_r⁻¹WᵀKWΣ_r⁻¹, and condition 1 for a norm:
// both by the Lanczos process from a random start, which unlike power iteration bounds the
// norm from above, with a stated probability.
//
// The theorem is stated for the polynomial kernel with TensorSketch. What it proves of a
// given Z — the conditions imply the bound on κ — uses nothing of how Z came about and
// holds for every kernel, and so for Fourier features. Its other half, that s of the order
// of s_λ(K)²/δ passes, is about TensorSketch alone.
//
// # What a verdict means
//
// Accept: by the ends of the intervals farthest from the threshold, so it is wrong with
// probability 1−Confidence at most, for the whole ladder: each of its rungs gets an equal
// share, of which condition 1 takes a third and condition 2 two. Reject: by the inner ends,
// which are Ritz values and certain up to rounding. Open, where the threshold lies within, is
// not accepted. All claims are about K itself: the intervals are those of K as it is multiplied by, widened for
// Problem.Error. Where that is a prediction, the confidence is given that it holds.
//
// Where the Ritz values of M⁻¹A leave the range that the conditions imply, they cannot both
// hold; the eigenvectors, 9s³ flops on one thread, are then found only up to Options.Eigen.
//
// # Cost
//
// The ladder keeps Ẑ = √(s/First)·Z, whose columns, and whose ẐᵀẐ, do not change when it is
// doubled (feature.Doubling, precond.Gram). So all rungs together form Z and ZᵀZ once, and factor
// (1+1/8+1/64+…) = 8/7 times what the last does. Memory: Z, a copy while it grows, and
// about 18s² bytes.
package sketchsize
