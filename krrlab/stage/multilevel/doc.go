// Package multilevel measures the quality of each level of Algorithm 2 of Avron, Clarkson and Woodruff
// (section 4): random features φ₁ of R^{s₁}, and sketches of them to the widths s₂, s₃, …
// (feature.Chain),
//
//	Z_1 = φ₁(X),  Z_{k+1} = Z_k·S_{k+1}ᵀ,  M_k = Z_kZ_kᵀ + λ_pI.
//
// For each level it measures ‖ZZᵀ−K‖₂ and κ(M⁻¹A) as intervals of stated confidence (package lanczos), the iterations
// of the solve, and the seconds of each part. Use it to see how much of a wide level's quality a narrow one retains,
// and whether features alone of the narrow width would do as well. Package sketchsize chooses a single width instead.
//
// # The measurements
//
// ‖ZZᵀ−K‖₂ comes from the Lanczos process of v ↦ Z(Zᵀv) − Kv, with Z in float32 and the products in float64. The
// preconditioner has Woodbury's form (package precond), which takes ns² + s³/3 flops to set up. If the set-up of a
// level exceeds Options.Work, or the memory, only the level's error is measured, and the result states the reason.
//
// # References
//
// H. Avron, K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using sketching and
// preconditioning, SIAM J. Matrix Anal. Appl. 38 (2017), doi:10.1137/16M1105396: section 4,
// algorithm 2, theorem 6. R. Hamid, Y. Xiao, A. Gittens, D. DeCoste, Compact random feature
// maps, ICML 2014, arXiv:1312.4626.
package multilevel
