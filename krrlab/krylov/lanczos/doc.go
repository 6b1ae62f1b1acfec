// Package lanczos finds the ends of the spectrum of a symmetric operator A, or of a pencil
// (A, M) of which M⁻¹ is known, with intervals that hold with a stated probability.
//
// # The process
//
// From r₁ with z₁ = M⁻¹r₁ and r₁ᵀz₁ = 1, with full reorthogonalization in the inner
// product ⟨r, r'⟩ = rᵀM⁻¹r' (M = I for a single operator),
//
//	w = Az_j,  α_j = z_jᵀw,  w ← w − Σ_{i≤j} (z_iᵀw)r_i,  z = M⁻¹w,
//	β_j = √(wᵀz),  r_{j+1} = w/β_j,  z_{j+1} = z/β_j.
//
// In terms of v_j = M^(-1/2)r_j this is the Lanczos process for M^(-1/2)AM^(-1/2), whose
// spectrum is that of M⁻¹A: what preconditioned conjugate gradients do, in another form.
// The eigenvalues of the tridiagonal T of the α_j and β_j, the Ritz values θ, lie inside
// the spectrum; the outer ones approach its ends first. Memory: 8nk bytes for k steps,
// 16nk for a pencil. Work: one product with A and one solve with M a step, and 8njk flops or
// so in all for j = k.
//
// # The bounds
//
// How far beyond θ_max can λ_max be? Write the start as v₁ = Σ γ_i u_i in eigenvectors
// u_i. The Lanczos polynomials p_0 = 1, p_1, …, p_k, v_{j+1} = p_j(·)v₁, are orthonormal for the
// measure Σ γ_i² δ(λ_i), so the mass that it has at λ_max is at most the Christoffel
// function there,
//
//	γ_max² ≤ 1 / Σ_{j≤k} p_j(λ_max)².
//
// The sum is known, and beyond θ_max it only grows. If v₁ is uniform on the sphere, γ_max² has
// the distribution Beta(½, (n−1)/2), and exceeds its δ-quantile q with probability 1−δ.
// Then λ_max ≤ U, where Σ_j p_j(U)² = 1/q: an upper bound from what the process itself has
// seen, not from a worst case. The event does not depend on k, so one may stop as soon
// as the interval is narrow enough. This is the bound of van Dorsselaer, Hochstenbach and
// van der Vorst, who take the last polynomial alone; the sum is a little sharper. The
// other end is treated in the same way.
//
// For a pencil v₁ = M^(-1/2)r₁ must be uniform; r = Zg₁+√λ_p·g₂ has covariance M = ZZᵀ+λ_pI
// exactly, which is what a Metric's NormalTo gives. A draw whose rᵀM⁻¹r is none of χ²_n is refused.
//
// APriori is the bound of Kuczyński and Woźniakowski: what k steps are sure to reach
// before one has taken them.
//
// # Exactness
//
// Products in float32 are not those of one symmetric matrix. How far they are from it shows in
// the products z_iᵀAz_j for i < j−1, which would be zero; Result.Slack estimates from
// them the norm of the perturbation for which the process would be exact, taking the errors
// of different products to point in unlike directions, and the intervals are widened by twice
// that. It is of the order of 1e-14 in float64. What a stored K differs from
// the true one is not seen; that is the caller's to add.
//
// # References
//
// J. L. M. van Dorsselaer, M. E. Hochstenbach, H. A. van der Vorst, Computing probabilistic
// bounds for extreme eigenvalues of symmetric matrices with the Lanczos method, SIAM J.
// Matrix Anal. Appl. 22 (2000), doi:10.1137/S0895479800366859. J. Kuczyński, H. Woźniakowski,
// Estimating the largest eigenvalue by the power and Lanczos algorithms with a random
// start, SIAM J. Matrix Anal. Appl. 13 (1992), doi:10.1137/0613066. B. N. Parlett, The Symmetric
// Eigenvalue Problem, SIAM 1998, chapters 13 and 15.
package lanczos
