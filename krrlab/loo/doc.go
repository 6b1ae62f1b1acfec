// Package loo scores ridges λ by leave-one-out and by generalized cross-validation, without a second fit.
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
// # The methods
//
//	Dense   Cholesky factors in float64, exact up to rounding    2n³/3 multiply-adds for each λ
//
// How to choose: Dense up to some thousands of points. An eigendecomposition of K would serve all λ at
// once. It is not taken: at n = 1,000 it takes as long as 4 (OpenBLAS) to 80 (Go) factorizations.
//
// # References
//
// G. H. Golub, M. Heath, G. Wahba, Generalized cross-validation as a method for choosing a good ridge
// parameter, Technometrics 21 (1979), doi:10.1080/00401706.1979.10489751. R. Rifkin, R. Lippert, Notes on
// regularized least squares, MIT-CSAIL-TR-2007-025: section 4 (leave-one-out, classes).
package loo
