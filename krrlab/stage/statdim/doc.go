// Package statdim computes the statistical dimension of a kernel matrix,
//
//	s_λ(K) = tr(K(K+λI)⁻¹) = Σ_i μ_i/(μ_i+λ) = n − λ·tr((K+λI)⁻¹),
//
// the number of degrees of freedom of the ridge regression, with an interval for what is
// not known exactly. The paper's sufficient numbers of features are functions of it: of the
// order of s_λ² (Theorem 1) or s_λ·log s_λ (Theorem 6).
//
// # The methods
//
//	Exact       eigenvalues of K                         4n³/3 flops, 8n² bytes
//	Hutchinson  probes z: zᵀ(I − λA⁻¹)z by block PCG     one λ
//	SLQ         stochastic Lanczos quadrature            all λ at once, no preconditioner
//	Free        the eigenvalues of ZᵀZ                   no product with K
//
// With A = K+λI and a probe z of independent signs, E[zᵀ(I−λA⁻¹)z] = s_λ and the variance
// is at most 2·min(s_λ, n−s_λ): a few probes are enough where s_λ is large. Where it is
// small, the control variate takes over (below).
//
// How to choose: Exact up to some thousands of points; SLQ for the curve λ ↦ s_λ and
// wherever its truncation is small after a few hundred products; Hutchinson with a
// preconditioner for λ far below ‖K‖. Free
// costs nothing where Z is there anyway, and says what it is worth.
//
// # The control variate
//
// With M = ZZᵀ+λ_pI, w(z) = zᵀ(I−λ_pM⁻¹)z has the known mean
//
//	tr(I−λ_pM⁻¹) = tr((ZZᵀ+λ_pI)⁻¹ZZᵀ) = ‖U‖_F² = s_{λ_p}(ZZᵀ),
//
// and the same probe gives y(z) = zᵀ(I−λA⁻¹)z. The estimate is the intercept at w = ‖U‖_F² of the least-squares line
// through (w_i, y_i): the coefficient is fitted, for with coefficient 1 the control can do harm. The interval is the
// intercept's Student interval with m−2 degrees of freedom, exact for normal (w, y), which sums over many eigenvalues
// nearly are, and no less than by the jackknife, whose deviation sees that the probes far from the mean have the large
// errors where one direction is most of (w, y). Without a control variate it is no narrower than that of one direction
// of variance 2θ², θ = min(tr K/(tr K+λ), n−s_λ), which is all that probes vary by where one group of rows is equal,
// and which few of them may miss. For it M⁻¹ and ‖U‖_F² must belong to each other to rounding: the preconditioner is
// taken in the eigen form, from ZᵀZ summed in float64.
//
// # Truncation
//
// A solve that ended with x and r = z−Ax gives, by zᵀA⁻¹z = zᵀx + xᵀr + rᵀA⁻¹r,
//
//	n − λ(zᵀx+xᵀr) − λ‖r‖²/(λ−e) ≤ zᵀ(I−λA⁻¹)z ≤ n − λ(zᵀx+xᵀr),
//
// certain, and of second order in the residual, so that solves to some per cent do. e ≥
// ‖K_stored−K‖₂ bounds how negative an eigenvalue of K as stored can be. The Gauss rule of
// Lanczos bounds zᵀA⁻¹z from below and the Gauss–Radau rule with a node at −e from above,
// for each λ (Golub and Meurant): also certain. The bounds are added to the interval with the
// weights of the probes.
//
// # Storage
//
// d/dt s_λ(K+tE) = λ·tr(A⁻²E), and both λA⁻² ≼ A⁻¹ and I−λ²A⁻² = B(2I−B), B = KA⁻¹, while
// tr E = 0 for an error off the diagonal. So to first order in e/λ
//
//	|s_λ(K_stored) − s_λ(K)| ≤ (e/λ)·min(n−s_λ, 2s_λ),
//
// which is added as well; with K in float32 it is mostly far below the rest. Products that round v to K(I+D)v, ‖D‖₂ ≤
// u, add u·√(s_λ(n−s_λ)).
//
// # Certain bounds
//
// tr K is known exactly, and t ↦ t/(t+λ) is concave, so that for any K
//
//	tr K/(tr K+λ) ≤ s_λ ≤ n·tr K/(tr K+nλ);
//
// no interval reaches beyond these. Where a bound η of ‖K−ZZᵀ‖₂ is certain, as of landmarks, each eigenvalue
// lies within η of one of ZZᵀ (Weyl), and the extremes of s_λ over those boxes with tr K given
// are found in closed form (majorization): Free's interval.
//
// # Adaptive numbers of probes
//
// Probes are added until (Hi−Lo)/Value is at most Options.Width, or there are
// Options.MaxProbes. Stopping when the interval looks narrow makes it cover a little less
// often than stated; the least number of probes keeps this within what the tests allow
// (95 % intervals cover in at least 90 of 100 seeds).
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
