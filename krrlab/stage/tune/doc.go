// Package tune chooses the kernel, its scale and the ridge λ of kernel ridge regression by minimizing the error on
// rows that the fit has not seen.
//
// # The criterion
//
// By default the criterion is the leave-one-out error: each row is predicted from all others, with the residual
// y_i−f_{−i}(x_i) = c_i/(A⁻¹)_ii, where f_{−i} is fitted without row i, A = K+λI and c = A⁻¹y (package leaveout). If
// Options.Valid is set, the fit predicts the rows of Valid instead.
//
// The error is the share of wrong labels, √(Σ(y_i−f(x_i))²/n) for a regression, or another metric (Options.Metric). Its
// 95 % interval accounts for the sampling of rows:
// it is Wilson's interval for a share, and Student's interval of the logarithm for a root mean square. If rows are in
// groups, it accounts for the sampling of groups, and the standard error is computed from the sums over groups. The
// interval does not account
// for the selection of a point by its error. Two points of the search are compared row by row, which detects
// differences far smaller than their intervals.
//
// # Levels
//
// The search begins on a subsample, where each error costs a factorization of a small K, and continues with more rows,
// up to all of them; each number of rows is a level. If the data are a Gaussian process with noise, the optimal λ of
// K+λI is the ratio of the two variances and hardly depends on n. For other data the optimum drifts with n. Each level
// therefore starts from the model of the previous level.
//
// # The model
//
// For each kernel, the logarithm of the error is modeled as a Gaussian process over (log σ, log λ) with a Matérn 5/2
// covariance; the length scales and the noise of the process are fitted by maximum likelihood. On later levels the
// prior mean of the process is the prediction of the previous level. The search evaluates the point with the largest
// expected improvement next
// (Jones, Schonlau, Welch, J. Global Optim. 13, 1998), and a level ends when the expected improvement is less than
// Options.Gain of the error.
//
// # Length scales
//
// After the last subsample, one length scale for each feature is fitted for the best kernel. The fit follows the
// gradient of the leave-one-out squared error of some rows (distanceObjective has the formulas). The length scales are
// accepted if they reduce the error on rows not used by this fit by more than two standard errors of the difference.
// The kernel with these length scales then joins the search as an additional kernel. A matrix L, which measures the
// distance of x and z by ‖L(x−z)‖, is fitted and judged in the same way.
//
// # The choice
//
// On the last level, the point with the smallest modeled error is the best. All points whose error exceeds the best by
// at most one standard error of the difference, and by at most half a percent, are tied with it. The smoothest of the
// tied points wins: points without length scales come first, then smoother kernels, then larger λ.
//
// # References
//
// C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press 2006, section 5.4.
// M. C. Kennedy and A. O'Hagan, Predicting the output from a complex computer code when fast approximations are
// available, Biometrika 87 (2000), doi:10.1093/biomet/87.1.1. L. Breiman et al., Classification and Regression
// Trees, 1984, section 3.4.3 (one standard error).
package tune
