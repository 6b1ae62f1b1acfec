// Package tune chooses the kernel, its scale and the ridge λ of kernel ridge regression by the error on rows that
// a fit has not seen.
//
// # The criterion
//
// Each row is predicted by all others, y_i−f_{−i}(x_i) = c_i/(A⁻¹)_ii (package leaveout), or the rows of
// Options.Valid are by the fit.
//
// The error is the share of wrong labels, or √(Σ(y_i−f(x_i))²/n). Its 95 % interval covers the sampling of rows:
// Wilson's for a share, Student's of the logarithm for squares. It does not cover the choice of a point by its error.
// Two points of the search are compared row by row, which detects differences far smaller than their intervals.
//
// # Levels
//
// The search begins on a subsample, where each error costs a factorization of a small K, and continues with more rows,
// up to all of them. The optimal λ of K+λI hardly depends on n where it is the variance of the noise over that of
// the function. Otherwise the optimum drifts, and each level starts from what the level before has learned.
//
// # The model
//
// The logarithm of the error is a Gaussian process over (log σ, log λ) for each kernel: Matérn 5/2,
// length scales and noise by maximum likelihood. On a level after the first its mean is the prediction of the level
// before. The next point is where the expected improvement is largest (Jones, Schonlau, Welch, J. Global Optim. 13,
// 1998), and a level ends when that is less than Options.Gain of the error.
//
// # Length scales
//
// After the last subsample the length scales of the features are searched for the best kernel, by the gradient of the
// leave-one-out squared error of some rows (relevance has the formulas). They are taken where rows that took no part
// are off by less, by more than two standard errors of the difference, and the kernel with its lengths joins the search
// as one more kernel.
//
// # The choice
//
// On the last level the point of least error by the model wins, and of points that are no worse by more than one
// standard error of the difference and half a percent the smoothest: without length scales first, then the smoother
// kernel, then the larger λ.
//
// # References
//
// C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press 2006, section 5.4.
// M. C. Kennedy and A. O'Hagan, Predicting the output from a complex computer code when fast approximations are
// available, Biometrika 87 (2000), doi:10.1093/biomet/87.1.1. L. Breiman et al., Classification and Regression
// Trees, 1984, section 3.4.3 (one standard error).
package tune
