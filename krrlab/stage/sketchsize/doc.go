// Package sketchsize determines the number s of random features that a preconditioner ZZᵀ+λ_pI needs. It doubles s
// until a test of Z accepts (section 5 of Avron, Clarkson and Woodruff, doi:10.1137/16M1105396). The numbers s that are
// tried form a ladder, and each of them is a rung.
//
// # The tests
//
// Kappa is the practical test. It accepts if the upper end of κ(M⁻¹A)'s interval is at most the target, where A = K+λI
// and M = ZZᵀ+λ_pI. The interval comes from the Lanczos process on the pencil (package lanczos), which takes some 20 to
// 60 products with A and solves with M.
//
// Theorem7 is the paper's test, for λ_p = λ and with any constants (θ, α, γ). Let P be the projector on the
// eigenvectors of ZZᵀ whose eigenvalues exceed θλ, and W an orthonormal basis of its range. The conditions are
//
//  1. ‖(I−P)K(I−P)‖₂ ≤ αλ,
//  2. the eigenvalues of (WᵀKW, WᵀZZᵀW) lie in [1−γ, 1+γ].
//
// Constants.Bound is the bound of κ that follows from the conditions. With ZᵀZ = VΣ²Vᵀ and W = ZV_rΣ_r⁻¹, WᵀZZᵀW = Σ_r²
// is diagonal. Condition 2 is then about the spectrum of Σ_r⁻¹WᵀKWΣ_r⁻¹, and condition 1 about a norm. Both are
// measured by the Lanczos process from a random start, which unlike power iteration bounds the norm from above, with a
// stated probability.
//
// The theorem is stated for the polynomial kernel with TensorSketch. The implication for a given Z, that the conditions
// imply the bound on κ, does not depend on the construction of Z. It holds for every kernel, and so for Fourier
// features. The other half of the theorem, that s of the order of s_λ(K)²/δ passes, is about TensorSketch alone.
//
// # The verdicts
//
// The verdict is Accept if the whole interval satisfies the condition. The probability that any rung is accepted
// wrongly is at most 1−Confidence: each rung has an equal share of this probability, of which condition 1 uses a third
// and condition 2 two thirds. The verdict is Reject if the inner end of the interval, which is a Ritz value, violates
// the condition; this is certain up to rounding. If the threshold lies inside the interval, the verdict is Open, and
// the rung is not accepted.
//
// All claims are about K itself: the intervals of the stored K are widened by Problem.Error. If Problem.Error is a
// prediction, the confidence is conditional on this prediction.
//
// If the Ritz values of M⁻¹A leave the range that the conditions imply, the conditions cannot both hold. The
// conditions, whose eigenvectors take 9s³ flops on one thread, are then measured only up to s = Options.Eigen.
//
// The ladder stores Ẑ = √(s/First)·Z. Neither its columns nor ẐᵀẐ change when the ladder doubles (feature.Doubling,
// precond.Gram). All rungs together therefore form Z and ZᵀZ once, and their factorizations take (1+1/8+1/64+…) = 8/7
// times the work of the last one. The memory is that of Z, a copy while it grows, and about 18s² bytes.
package sketchsize
