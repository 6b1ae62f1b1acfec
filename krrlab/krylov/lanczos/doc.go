// Package lanczos computes the ends of the spectrum of a symmetric operator A, or of a pencil (A, M) for which M⁻¹ is
// available, with intervals that are valid with a stated probability.
//
// # The process
//
// The process starts from r₁ with z₁ = M⁻¹r₁ and r₁ᵀz₁ = 1, and uses full reorthogonalization in the inner product
// ⟨r, r'⟩ = rᵀM⁻¹r' (M = I for a single operator):
//
//	w = Az_j,  α_j = z_jᵀw,  w ← w − Σ_{i≤j} (z_iᵀw)r_i,  z = M⁻¹w,
//	β_j = √(wᵀz),  r_{j+1} = w/β_j,  z_{j+1} = z/β_j.
//
// In terms of v_j = M^(-1/2)r_j this is the Lanczos process for M^(-1/2)AM^(-1/2), which has the same spectrum as M⁻¹A.
// It is mathematically equivalent to preconditioned conjugate gradients. The Ritz values θ, which are the eigenvalues
// of the tridiagonal matrix T of the α_j and β_j, lie inside the spectrum, and the outer ones converge to its ends
// first. Memory: 8nk bytes for k steps, 16nk for a pencil. Work: one product with A and one solve with M per step, and
// about 8njk flops in total for j = k.
//
// # The bounds
//
// The bounds limit the distance of λ_max from θ_max. Write the start vector as v₁ = Σ γ_i u_i in eigenvectors u_i. The
// Lanczos polynomials p_0 = 1, p_1, …, p_k, with v_{j+1} = p_j(·)v₁, are orthonormal for the discrete measure with the
// mass γ_i² at λ_i. The mass at λ_max is therefore at most the Christoffel function there,
//
//	γ_max² ≤ 1 / Σ_{j≤k} p_j(λ_max)².
//
// The sum can be computed, and it increases beyond θ_max. If v₁ is uniform on the sphere, γ_max² has the distribution
// Beta(½, (n−1)/2), and exceeds its δ-quantile q with probability 1−δ. Then λ_max ≤ U, where Σ_j p_j(U)² = 1/q. This
// upper bound depends on the computed α_j and β_j and is not a worst case over all spectra. The event γ_max² > q does
// not depend on k, so the process may stop as soon as the interval is narrow enough. This is the bound of van
// Dorsselaer, Hochstenbach and van der Vorst, who use only the last polynomial; the sum is slightly sharper. The other
// end is treated in the same way.
//
// For a pencil, v₁ = M^(-1/2)r₁ must be uniform. The vector r = Zg₁+√λ_p·g₂ has exactly the covariance M = ZZᵀ+λ_pI,
// and Metric.NormalTo draws such a vector. A draw is rejected if rᵀM⁻¹r is not plausible for a χ²_n variable.
//
// APrioriError is the bound of Kuczyński and Woźniakowski for the accuracy after k steps, which is known before the
// process runs.
//
// # Exactness
//
// Products in float32 are not the products with one symmetric matrix. The products z_iᵀAz_j for i < j−1, which would be
// zero in exact arithmetic, show the size of the error. From them, Result.Slack estimates the norm of the perturbation
// of A for which the process would be exact, assuming that the errors of different products have unrelated directions.
// The intervals are widened by twice this estimate, which is of the order of 1e-14 in float64. The process cannot
// detect the storage error of a stored K; the caller must add it. If M⁻¹ is so inaccurate that the estimate fails, Ritz
// values become negative. The process then compares the smallest one with the Rayleigh quotient of its Ritz vector, and
// ends if they differ.
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
