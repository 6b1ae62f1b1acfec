// Package leaveout scores ridges λ by leave-one-out and by generalized cross-validation, without a second fit.
//
// With A = K+λI, C = A⁻¹Y and f_{−i} fitted to all points but the i-th,
//
//	y_i − f_{−i}(x_i) = c_i/(A⁻¹)_ii
//
// for each right-hand side, and
//
//	GCV = n‖c‖²/(tr A⁻¹)²
//
// replaces each (A⁻¹)_ii by their mean: both are functions of one solution and of diag(A⁻¹).
//
// Rows that equal one another are left out together, as a fit that has one of them knows the others, and the mean of
// the targets is that of the rows that are left: see Problem. Both are exact, by one row for each group and one
// right-hand side more.
//
// # The methods
//
//	Dense   Cholesky factors in float64, exact up to rounding    2n³/3 multiply-adds for each λ
//	Path    products with K, all λ in one subspace, intervals    some 20 passes over K for all λ
//
// How to choose: Dense up to some thousands of points, Path beyond. An eigendecomposition of K would serve all λ at
// once. It is not taken: at n = 1,000 it takes as long as 4 (OpenBLAS) to 80 (Go) factorizations.
//
// # One subspace for all λ
//
// (K+λI)⁻¹b is a smooth function of log λ: those of all λ lie near a space of few dimensions, and a direction that
// helps one helps its neighbors. So Path does not iterate for each λ apart. All share one subspace V and the
// product KV, in which each has the nearest solution (Galerkin), and only the λ that is worst off adds a direction.
// Right-hand sides and probes share it too.
//
// # The diagonal
//
// With M = ZZᵀ+λI and probes g of signs,
//
//	diag(A⁻¹) = diag(M⁻¹) + E[g∘(A⁻¹−M⁻¹)g],  1−λ(M⁻¹)_ii = Σ_k (ZV)_ik²/(σ_k²+λ),
//
// from one eigendecomposition ZᵀZ = VΣ²Vᵀ for all λ. With m probes the noise of λ(A⁻¹)_ii is at most
// √((h_i−h_i(ZZᵀ))/m), h the leverages. Where λ is so small that Z misses a large part of the leverages this is
// not small beside 1−h_i, and no interval is claimed but the certain one: more columns of Z help most, then probes.
//
// What intervals cover: the probes at the stated rate, for each λ by itself; the solves, by how much one more
// step changes the result. What they do not cover: errors of K as stored that fall on few points.
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
