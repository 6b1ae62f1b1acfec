// Package leaveout computes leave-one-out and generalized cross-validation scores of ridges λ without fitting again.
//
// Let A = K+λI, C = A⁻¹Y, and let f_{−i} be the function fitted to all points except the i-th. Then
//
//	y_i − f_{−i}(x_i) = c_i/(A⁻¹)_ii
//
// for each right-hand side. Generalized cross-validation,
//
//	GCV = n‖c‖²/(tr A⁻¹)²
//
// replaces each (A⁻¹)_ii by their mean. Both scores therefore depend only on one solution and on diag(A⁻¹).
//
// Equal rows are left out together, because otherwise the fit still contains copies of the row. If the mean of the
// targets is subtracted, a fit without a row uses the mean of the remaining rows (see Problem). Both rules are computed
// exactly, with one row for each group of equal rows and one additional right-hand side.
//
// # The methods
//
//	Dense    Cholesky factors in float64, exact up to rounding    2n³/3 multiply-adds for each λ
//	Fourier  a series with M modes, in one to three dimensions    a pass over the points and 5M³/3 for each λ
//	Path     products with K, all λ in one subspace, intervals    some 20 passes over K for all λ
//
// How to choose: use Dense up to some thousands of points, and Path beyond. An eigendecomposition of K would serve all
// λ at once, but it is not used: at n = 1,000 it takes as long as 4 (OpenBLAS) to 80 (Go) factorizations.
//
// # One subspace for all λ
//
// (K+λI)⁻¹b is a smooth function of log λ. The solutions for all λ are therefore close to a space of low dimension, and
// a direction that improves one solution also improves those for nearby λ. Path does not iterate for each λ separately.
// All λ share one subspace V and the product KV, each has its nearest solution in V (Galerkin), and only the λ with the
// largest error adds a direction. Right-hand sides and probes share the subspace too.
//
// # The diagonal
//
// With the preconditioner M = ZZᵀ+λI, the eigendecomposition ZᵀZ = VΣ²Vᵀ, which serves all λ, and random probes g whose
// entries are ±1,
//
//	diag(A⁻¹) = diag(M⁻¹) + E[g∘(A⁻¹−M⁻¹)g],  1−λ(M⁻¹)_ii = Σ_k (ZV)_ik²/(σ_k²+λ),
//
// With m probes the noise of λ(A⁻¹)_ii is at most √((h_i−h_i(ZZᵀ))/m), where h_i = 1−λ(A⁻¹)_ii are the leverages of K
// and h_i(ZZᵀ) those of ZZᵀ. If λ is so small that Z misses a large part of the leverages, the noise is not small
// compared with 1−h_i. In this case the interval has only the ends that follow from bounds of (A⁻¹)_ii. More columns of
// Z reduce the noise most, then more probes.
//
// The intervals cover the error of the probes with the stated confidence, for each λ separately, and the error of the
// solves, measured by the change of the result in one more step. They do not cover storage errors of K that affect
// only a few points.
//
// # References
//
// C. Bekas, E. Kokiopoulou, Y. Saad, An estimator for the diagonal of a matrix, Appl. Numer. Math. 57 (2007),
// doi:10.1016/j.apnum.2007.01.003.
//
// G. H. Golub, M. Heath, G. Wahba, Generalized cross-validation as a method for choosing a good ridge
// parameter, Technometrics 21 (1979), doi:10.1080/00401706.1979.10489751. R. Rifkin, R. Lippert, Notes on
// regularized least squares, MIT-CSAIL-TR-2007-025: section 4 (leave-one-out, classes).
package leaveout
