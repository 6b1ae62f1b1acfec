// Package fourier approximates the kernel matrix of points in one, two or three dimensions by a short Fourier series
// with a proved error, so that the cost of a fit grows with the number of modes and only linearly, with a small
// constant, with the number n of points. It is for smooth kernels that are not narrow compared with the box of the
// points.
//
// # The series
//
// Let L_a be the side of the box along axis a, and P_a = L_a + R_a a longer period. A Gaussian kernel is a product over
// the axes, and for |x_a| ≤ L_a each factor is
//
//	exp(−x²/2σ²) = Σ_{|j| ≤ m} w_j exp(2πi j x/P) + e(x),   w_j = √(2π) (σ/P) exp(−2π²σ²j²/P²),
//
// by Poisson's summation formula, where |e| is at most δ, the sum of bounds for the periodic images and for the tail of
// the series,
//
//	images = 2 exp(−R²/2σ²)/(1 − exp(−RP/σ²)),   tail = 2 w_m exp(−s(2m+1))/(1 − exp(−s(2m+1))),   s = 2π²σ²/P².
//
// Each factor is at most 1, so an entry of K̃ differs from that of K by at most ε, the sum of three numbers: Π_a(1+δ_a)
// − 1, the weights of the modes that are omitted, and the error of the Chebyshev expansions (below). The omitted modes
// are those of least weight, as many as the accuracy allows. Series.EntryError is ε, and ‖K̃ − K‖₂ ≤ nε. The bound
// covers the truncation, not the rounding of float64, which is about 10⁻¹⁶ times the highest frequency for an entry.
//
// A kernel whose spectral density S is known (Density), such as Matérn 5/2, has the weights S(‖ξ‖)·Π_a(1/P_a) at the
// frequencies ξ_a = j_a/P_a. The images are bounded by an exponential, the tail by integrals. The tail of a Matérn
// kernel decays like a power, so that its series is accurate to some 10⁻⁸ only; the tails of Matérn 3/2 and of the
// Laplacian decay too slowly for a series at all.
//
// # The solve
//
// In the real basis of cosines and sines K̃ = ΦΦᵀ with Φ n×M, M = Π_a(2m_a+1), and
//
//	(ΦᵀΦ + λI)β = ΦᵀY,   C = (Y − Φβ)/λ,   f(x) = φ(x)ᵀβ,
//
// where φ(x)ᵀ is the row of Φ for a point x. The entries of ΦᵀΦ are sums of products of cosines and sines, and by the
// product-to-sum identities they are combinations of the moments Σ_i Π_a t_a(q_a θ_ia), q_a ≤ 2m_a, where t_a is cos or
// sin and θ_ia the angle of coordinate a of point i. Up to Options.DirectModes modes ΦᵀΦ + λI is factored; for more,
// conjugate gradients apply it by a quadrature rule with 4m_a+2 nodes along each axis, whose sums are matrix products
// of the factors of each axis. The preconditioner is exact on some thousands of modes of largest weight.
//
// # A pass over the points
//
// Moments, ΦᵀV and Φβ take a pass over the points. The box is cut into cells, in which each cosine and sine is a
// combination of p Chebyshev polynomials, by the Jacobi-Anger expansion, with an error η of at most 2·10⁻¹⁶, which is
// proved (DLMF 10.12.2 and 10.14.4). A point then takes p^d multiplications, whatever the number of modes, with p from
// 12 to 32; the rest is done once for each cell. An entry of K̃ thereby changes by at most ((1+η)^2d − 1) Σ_j w_j, and
// ΦᵀΦ by at most 2^d((1+η)^d − 1) n Σ_j w_j in the 2-norm.
//
// # When to use it
//
// M grows as (L/σ)^d. For a narrow kernel (σ below L/50 in the plane) K is sparse, and sparse tiles are faster. A
// single outlying point enlarges the box and so M.
//
// # References
//
// Matérn: C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press 2006, equation
// 4.15. P. Greengard, M. Rachh and A. Barnett, Equispaced Fourier representations for efficient Gaussian process
// regression from a billion data points, arXiv:2210.10210. L. Greengard and J.-Y. Lee, Accelerating the nonuniform fast
// Fourier transform, SIAM Review 46 (2004), for the aliasing bound. NIST Digital Library of Mathematical Functions,
// https://dlmf.nist.gov, chapter 10, for Bessel functions.
package fourier
