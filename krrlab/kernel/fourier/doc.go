// Package fourier approximates the kernel matrix of points in one, two or three dimensions by a short Fourier series with
// a proved error, so that the cost of a fit grows with the number of modes and only linearly, with a small constant, with
// the number n of points. It is for smooth kernels that are not narrow compared with the box of the points.
//
// # The series
//
// Let L_a be the side of the box along axis a, and P_a = L_a + R_a a longer period. A Gaussian kernel is a product over
// the axes, and for |x_a| ≤ L_a each factor is
//
//	exp(−x²/2σ²) = Σ_{|j| ≤ m} w_j exp(2πi j x/P) + e(x),   w_j = √(2π) (σ/P) exp(−2π²σ²j²/P²),
//
// by Poisson's summation formula, with |e| ≤ δ = images + tail,
//
//	images = 2 exp(−R²/2σ²)/(1 − exp(−RP/σ²)),   tail = 2 w_m exp(−s(2m+1))/(1 − exp(−s(2m+1))),   s = 2π²σ²/P².
//
// Because each factor is at most 1, an entry of K̃ differs from that of K by at most ε = Π_a(1+δ_a) − 1, and
// ‖K̃ − K‖₂ ≤ nε. Series.EntryError is ε. It covers the truncation, not the rounding of float64, which is smaller than
// 10⁻¹³ for an entry.
//
// # The solve
//
// In the real basis of cosines and sines K̃ = ΦΦᵀ with Φ n×M, M = Π_a(2m_a+1), and
//
//	(ΦᵀΦ + λI)β = ΦᵀY,   C = (Y − Φβ)/λ,   f(x) = φ(x)ᵀβ.
//
// The entries of ΦᵀΦ are sums of products of cosines and sines, and by the product-to-sum identities they are
// combinations of the moments Σ_i Π_a t_a(q_a θ_ia), q_a ≤ 2m_a, which matrix products of the factors of each axis give:
// 8n Π_a(2m_a+1) flops in the plane. Up to Options.DirectModes modes ΦᵀΦ + λI is factored; for more, conjugate gradients
// apply it by fast Fourier transforms.
//
// # When to use it
//
// M grows as (L/σ)^d. For a narrow kernel (σ below L/50 in the plane) K is sparse, and sparse tiles are faster. A single
// outlying point enlarges the box and so M.
//
// # References
//
// P. Greengard, M. Rachh and A. Barnett, Equispaced Fourier representations for efficient Gaussian process regression
// from a billion data points, arXiv:2210.10210. L. Greengard and J.-Y. Lee, Accelerating the nonuniform fast Fourier
// transform, SIAM Review 46 (2004), for the aliasing bound.
package fourier
