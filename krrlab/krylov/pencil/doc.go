// Package pencil compares preconditioners M_c of A = K+λI by their pencils (A, M_c). For each one it runs conjugate
// gradients, computes intervals of κ(M_c⁻¹A), and for small n computes all eigenvalues.
//
// All preconditioners share the products with K: one column of a block belongs to each M_c (pcg.ColumnPreconditioner),
// and each column takes the same steps as in a separate solve. The Lanczos processes of M_c⁻¹A (lanczos.RunMany) share
// the products in the same way. If M_c implements lanczos.Metric, which draws normal vectors of covariance M_c, the
// intervals of the Lanczos process are valid with a stated confidence; they are widened by the storage error of K. If
// M_c can only apply its inverse, the Ritz values of conjugate gradients bound κ from below.
//
// The stages quality (one M), lambdap (one ZZᵀ, many λ_p) and compare (any M) present these results. The M_c are
// *Preconditioners, for arbitrary preconditioners, or a *precond.RidgeFamily, which uses one eigendecomposition for all
// λ_p.
package pencil
