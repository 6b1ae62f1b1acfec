// Package statdim computes the statistical dimension of a kernel matrix,
//
//	s_λ(K) = tr(K(K+λI)⁻¹) = Σ_i μ_i/(μ_i+λ) = n − λ·tr((K+λI)⁻¹),
//
// the number of degrees of freedom of the ridge regression, with an interval for estimates. It determines the paper's
// sufficient numbers of features, which are of the order of s_λ² (Theorem 1) or s_λ·log s_λ (Theorem 6).
//
// # The methods
//
//	Exact       eigenvalues of K                         4n³/3 flops, 8n² bytes
//	Hutchinson  probes z: zᵀ(I − λA⁻¹)z by block PCG     one λ
//	SLQ         stochastic Lanczos quadrature            all λ at once, no preconditioner
//	Free        the eigenvalues of ZᵀZ                   no product with K
//	Fourier     the modes of a Fourier series of K       points in one to three dimensions
//
// Z (n×s) has the random features or is the landmark factor of the configured preconditioner, with ZZᵀ ≈ K. With A =
// K+λI and a probe z of independent signs, E[zᵀ(I−λA⁻¹)z] = s_λ and the variance is at most 2·min(s_λ, n−s_λ): a few
// probes are enough if s_λ is large. If s_λ is small, the control variate below reduces the variance.
//
// How to choose: use Exact up to some thousands of points; SLQ for the curve λ ↦ s_λ, and whenever its truncation is
// small after a few hundred products; and Hutchinson with a preconditioner for λ far below ‖K‖. Free costs nothing if Z
// has been computed anyway, and its interval shows how accurate it is.
//
// # The control variate
//
// With M = ZZᵀ+λ_pI and M⁻¹ = λ_p⁻¹(I−UᵀU), the form w(z) = zᵀ(I−λ_pM⁻¹)z has the known expectation
//
//	tr(I−λ_pM⁻¹) = tr((ZZᵀ+λ_pI)⁻¹ZZᵀ) = ‖U‖_F² = s_{λ_p}(ZZᵀ),
//
// and the same probe gives y(z) = zᵀ(I−λA⁻¹)z. The estimate is the value at w = ‖U‖_F² of the least-squares line
// through the points (w_i, y_i) of m probes. The slope is fitted, because a control variate with slope 1 can increase
// the variance.
//
// The interval is the Student interval of this value with m−2 degrees of freedom, which is exact for normal (w, y);
// sums over many eigenvalues are nearly normal. It is at least as wide as the jackknife interval: if one direction
// dominates (w, y), the probes far from the mean have the large errors, and only the jackknife accounts for them.
//
// Without a control variate, the interval is at least as wide as for a single direction of variance 2θ², θ = min(tr
// K/(tr K+λ), n−s_λ). If K has one group of equal rows, such a direction is the only source of variance, and a few
// probes may miss it.
//
// M⁻¹ and ‖U‖_F² must be consistent up to rounding for the control variate. Both are therefore computed from the
// eigenvalues and eigenvectors of ZᵀZ, which is summed in float64.
//
// # Truncation
//
// If a solve ends with x and r = z−Ax, then zᵀA⁻¹z = zᵀx + xᵀr + rᵀA⁻¹r, so that
//
//	n − λ(zᵀx+xᵀr) − λ‖r‖²/(λ−e) ≤ zᵀ(I−λA⁻¹)z ≤ n − λ(zᵀx+xᵀr),
//
// for certain. Here e is a bound of ‖K_stored−K‖₂ for the stored matrix K_stored, which has no eigenvalue below −e. The
// error is of second order in the residual, so that residuals of some per cent are accurate enough. For SLQ, the Gauss
// rule of Lanczos bounds zᵀA⁻¹z from below and the Gauss–Radau rule with a node at −e from above, for each λ (Golub and
// Meurant), also for certain. These error bounds, with the weights of the probes, are added to the interval.
//
// # Storage
//
// The derivative of s_λ with respect to an error E = K_stored−K is d/dt s_λ(K+tE) = λ·tr(A⁻²E). Both λA⁻² ≼ A⁻¹ and
// I−λ²A⁻² = B(2I−B) hold, with B = KA⁻¹, and tr E = 0 as the diagonal is exact. So to first order in e/λ
//
//	|s_λ(K_stored) − s_λ(K)| ≤ (e/λ)·min(n−s_λ, 2s_λ).
//
// This bound is added to the interval as well; with K in float32 it is usually far below the other parts. If products
// with K round the vector v, to K(I+D)v with ‖D‖₂ ≤ u, they add u·√(s_λ(n−s_λ)).
//
// # Certain bounds
//
// tr K is known exactly, and t ↦ t/(t+λ) is concave, so that for any K
//
//	tr K/(tr K+λ) ≤ s_λ ≤ n·tr K/(tr K+nλ);
//
// every interval is cut to these bounds. If a bound η of ‖K−ZZᵀ‖₂ is certain, as for landmarks, the i-th eigenvalue of
// K lies within η of the i-th eigenvalue of ZZᵀ (Weyl). The extremes of s_λ over all such eigenvalues with the sum tr K
// are known from majorization (Marshall, Olkin and Arnold); they are the ends of the interval of Free.
//
// # Adaptive numbers of probes
//
// Probes are added until the interval [Lo, Hi] has a relative width (Hi−Lo)/Value of at most Options.Width, or there
// are Options.MaxProbes. Stopping as soon as the interval is narrow reduces its coverage a little below the stated
// confidence; the minimum number of probes keeps the loss small (in the tests, intervals of 95 % contain s_λ for at
// least 90 of 100 seeds).
//
// # References
//
// H. Avron, K. L. Clarkson, D. P. Woodruff, SIAM J. Matrix Anal. Appl. 38 (2017),
// doi:10.1137/16M1105396: proposition 3. M. F. Hutchinson, A stochastic estimator of the trace
// of the influence matrix, Commun. Stat. Simul. 19 (1990), doi:10.1080/03610919008812866.
// G. H. Golub, G. Meurant, Matrices, Moments and Quadrature with Applications, Princeton 2010,
// chapter 6. S. Ubaru, J. Chen, Y. Saad, Fast estimation of tr(f(A)) via stochastic Lanczos
// quadrature, SIAM J. Matrix Anal. Appl. 38 (2017), doi:10.1137/16M1104974. A. W. Marshall,
// I. Olkin, B. C. Arnold, Inequalities: Theory of Majorization, Springer 2011.
package statdim
