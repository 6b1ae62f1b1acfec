// Package baseline has competitors of the preconditioned solver, each implemented well:
// the random features method and block ADMM on random features. Plain conjugate gradients
// are pcg.Solve without a preconditioner, and the dense solve is package direct.
//
//	method               minimizes                          cost, s features
//	RandomFeatures       ‖ZW−Y‖²+λ‖W‖²                      nsd + ns²/2 + s³/6
//	ADMM                 Σ loss(y, ZW) + (λ/2)‖W‖²          nsd + ns²/2C, then 2nst an iteration
//
// λ is the same ridge in both, that of K+λI: as ZZᵀ → K they tend to the exact method. (The square
// loss of ADMM is ½(y−o)².) Both keep Z, in float32.
//
// # Random features
//
// RandomFeatures solves the problem of the features themselves by the inverse that package precond makes of ZᵀZ+λI,
// and PCG: products for ZᵀZ may then be in float32 (twice as fast), as the iteration corrects the result.
//
// # Block ADMM
//
// ADMM is the block splitting of Parikh and Boyd as Avron and Sindhwani use it for random
// features. Z is cut into C blocks of columns; with copies x_j of the weights w_j of a block and its
// part y_j of the outputs y,
//
//	min loss(y) + (λ/2)Σ_j‖w_j‖²  with  y_j = Z_jx_j,  x_j = w_j,  y = Σ_j y_j.
//
// An iteration, in scaled form, with x̃ and ỹ the duals of w and y, x̃_j those of x_j (the dual of y_j is
// −ỹ), is
//
//	y^½ = prox_{loss/ρ}(y−ỹ),  w_j^½ = ρ(w_j−x̃)/(λ+ρ)
//	(x_j, y_j) = the point of {y = Z_jx} nearest to (w_j−x̃_j, y_j+ỹ)
//	w_j ← (w_j^½+x_j)/2,  y, y_j ← the nearest with y = Σ_j y_j
//	the duals are increased by what the last line took away.
//
// The projection needs the inverse of I+Z_jᵀZ_j; it does not depend on ρ. One pass over Z does the second
// product of one iteration and the first of the next. The loop ends by the residuals of the splitting
// (ADMMOptions.Tol); the duality gap, measured from the subgradients at the proximal points, bounds the error of the
// objective whatever they say. Speed depends on ρ, which is chosen from a grid.
//
// # References
//
// A. Rahimi and B. Recht, Random features for large-scale kernel machines, NIPS 2007. H. Avron and V. Sindhwani,
// High-performance kernel machines with implicit distributed optimization and randomization, Technometrics 58 (2016),
// doi:10.1080/00401706.2015.1111261, arXiv:1409.0940. N. Parikh and S. Boyd, Block splitting for distributed
// optimization, Math. Prog. Comp. 6 (2014), doi:10.1007/s12532-013-0061-8. S. Boyd et al., Distributed optimization and
// statistical learning via the alternating direction method of multipliers, 2011, doi:10.1561/2200000016: section 3.3
// for the residuals. H. Avron, K. L. Clarkson and D. P. Woodruff, Faster kernel ridge regression using sketching and
// preconditioning, SIAM J. Matrix Anal. Appl. 38 (2017), doi:10.1137/16M1105396: section 6 for the comparisons.
package baseline
