// Package baseline implements two methods that are compared with the preconditioned solver: the random features method
// and block ADMM on random features. Two other methods for comparison are elsewhere: pcg.Solve without a preconditioner
// is the method of conjugate gradients, and package direct is the dense solver.
//
//	method               minimizes                          multiply-adds
//	RandomFeatures       ‖ZW−Y‖²+λ‖W‖²                      nsd + ns²/2 + s³/6, then 4nst an iteration
//	ADMM                 Σ loss(y, o) + (λ/2)‖W‖²           nsd + ns²/(2C), then 2nst an iteration
//
// The n×s matrix Z has the features of n points of dimension d, Y (n×t) the targets, and W (s×t) the weights. The sum
// is over the entries y of Y and the entries o of the outputs ZW. C is the number of blocks of ADMM. In both methods λ
// is the ridge of K+λI: as ZZᵀ → K, they converge to the exact method. (The square loss of ADMM is ½(y−o)².) Both store
// Z in float32.
//
// # Random features
//
// RandomFeatures solves the ridge regression on the features by PCG, with the inverse of ZᵀZ+λI from package precond as
// its preconditioner. The products for ZᵀZ may therefore be in float32, which is twice as fast, because the iteration
// corrects their error.
//
// # Block ADMM
//
// ADMM is the block splitting of Parikh and Boyd, as Avron and Sindhwani use it for random features. Z is divided into
// C blocks Z_j of columns. With the weights w_j of a block, their copies x_j, and the contribution y_j of the block to
// the outputs y, the problem is
//
//	min loss(y) + (λ/2)Σ_j‖w_j‖²  with  y_j = Z_jx_j,  x_j = w_j,  y = Σ_j y_j.
//
// An iteration, in scaled form with the penalty parameter ρ > 0, has the duals ỹ of y, w̃_j of w_j and x̃_j of x_j; the
// dual of y_j is −ỹ. It consists of proximal points, projections, averages, and the update of the duals:
//
//	y^½ = prox_{loss/ρ}(y−ỹ),  w_j^½ = ρ(w_j−w̃_j)/(λ+ρ)
//	(x_j, y_j^½) = the point of {(x, Z_jx)} nearest to (w_j−x̃_j, y_j+ỹ)
//	w_j ← (w_j^½+x_j)/2,  y ← y^½−δ,  y_j ← y_j^½+δ  with  δ = (y^½−Σ_j y_j^½)/(C+1)
//	ỹ ← ỹ+δ,  w̃_j ← w̃_j+w_j^½−w_j,  x̃_j ← x̃_j+x_j−w_j
//
// The projection needs the inverse of I+Z_jᵀZ_j, which does not depend on ρ. One pass over Z computes the second
// product of an iteration and the first product of the next one. The loop ends when the residuals of the splitting are
// small (ADMMOptions.Tol). Independently of them, the duality gap, which is computed from the subgradients at the
// proximal points, bounds the error of the objective. The speed of convergence depends on ρ, which is chosen from a
// grid.
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
