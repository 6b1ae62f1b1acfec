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
//
// With A = K+λI and a probe z of independent signs, E[zᵀ(I−λA⁻¹)z] = s_λ and the variance is at most 2·min(s_λ, n−s_λ):
// a few probes are enough if s_λ is large. If s_λ is small, the control variate below reduces the variance.
//
// How to choose: use Exact up to some thousands of points; SLQ for the curve λ ↦ s_λ, and whenever its truncation is
// small after a few hundred products; and Hutchinson with a preconditioner for λ far below ‖K‖. Free costs nothing if Z
// has been computed anyway, and its interval shows how accurate it is.
//
// # The control variate
//
// With M = ZZᵀ+λ_pI, the form w(z) = zᵀ(I−λ_pM⁻¹)z has the known expectation
//
//	tr(I−λ_pM⁻¹) = tr((ZZᵀ+λ_pI)⁻¹ZZᵀ) = ‖U‖_F² = s_{λ_p}(ZZᵀ),
//
// and the same probe gives y(z) = zᵀ(I−λA⁻¹)z. The estimate is the intercept at w = ‖U‖_F² of the least-squares line
// through (w_i, y_i). The coefficient is fitted, because a control variate with coefficient 1 can increase the
// variance.
//
// The interval is the intercept's Student interval with m−2 degrees of freedom, which is exact for normal (w, y); sums
// over many eigenvalues are nearly normal. It is at least as wide as the jackknife interval. If one direction dominates
// (w, y), the probes far from the mean have the large errors, and only the jackknife accounts for that.
//
// Without a control variate, the interval is at least as wide as that of one direction of variance 2θ², θ = min(tr
// K/(tr K+λ), n−s_λ). If K has one group of equal rows, that direction is the only source of variance, and a few probes
// may miss it.
//
// M⁻¹ and ‖U‖_F² must be consistent up to rounding for the control variate. The preconditioner therefore has the eigen
// form, from ZᵀZ summed in float64.
//
// # Truncation
//
// If a solve ends with x and r = z−Ax, then zᵀA⁻¹z = zᵀx + xᵀr + rᵀA⁻¹r, so that
//
//	n − λ(zᵀx+xᵀr) − λ‖r‖²/(λ−e) ≤ zᵀ(I−λA⁻¹)z ≤ n − λ(zᵀx+xᵀr),
//
// for certain. The error is of second order in the residual, so that residuals of some per cent are accurate enough. e
// ≥ ‖K_stored−K‖₂ bounds how negative an eigenvalue of the stored K can be. The Gauss rule of Lanczos bounds zᵀA⁻¹z
// from below and the Gauss–Radau rule with a node at −e from above, for each λ (Golub and Meurant), also for certain.
// The bounds are added to the interval with the weights of the probes.
//
// # Storage
//
// The derivative is d/dt s_λ(K+tE) = λ·tr(A⁻²E). Both λA⁻² ≼ A⁻¹ and I−λ²A⁻² = B(2I−B) hold, with B = KA⁻¹, and tr E =
// 0 for an error off the diagonal. So to first order in e/λ
//
//	|s_λ(K_stored) − s_λ(K)| ≤ (e/λ)·min(n−s_λ, 2s_λ).
//
// This bound is added to the interval as well; with K in float32 it is usually far below the other parts. Products that
// round v, to K(I+D)v with ‖D‖₂ ≤ u, add u·√(s_λ(n−s_λ)).
//
// # Certain bounds
//
// tr K is known exactly, and t ↦ t/(t+λ) is concave, so that for any K
//
//	tr K/(tr K+λ) ≤ s_λ ≤ n·tr K/(tr K+nλ);
//
// every interval is cut to these bounds. If a bound η of ‖K−ZZᵀ‖₂ is certain, as for landmarks, each eigenvalue lies
// within η of one of ZZᵀ (Weyl). The extremes of s_λ over those boxes, for the given tr K, are known in closed form
// (majorization); they are Free's interval.
//
// # Adaptive numbers of probes
//
// Probes are added until (Hi−Lo)/Value is at most Options.Width, or there are Options.MaxProbes. Stopping at a narrow
// interval reduces its coverage a little below the stated confidence; the minimum number of probes keeps this within
// the limits of the tests (95 % intervals cover in at least 90 of 100 seeds).
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
