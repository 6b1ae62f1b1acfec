// Package pencil judges preconditioners M_c of A = K+λI side by side, by the pencils (A, M_c): conjugate gradients with
// each, intervals of κ(M_c⁻¹A), and for small n all eigenvalues.
//
// Column c of a block is the solve with M_c, so that one product with K serves all (pcg.ColumnPreconditioner), and each
// takes the steps that it takes alone. So it is with the Lanczos processes of M_c⁻¹A (lanczos.RunMany), whose intervals
// hold with a stated confidence where M_c can draw normal vectors of covariance M_c; they are widened by the error of K
// as stored. Of an M of which only the inverse is known the Ritz values of conjugate gradients bound κ from below.
//
// The stages quality (one M), lambdap (one ZZᵀ, many λ_p) and compare (any M) are views of it. M_c are a *Sides, any
// preconditioners, or a *precond.Family, which has one eigendecomposition for all λ_p.
package pencil
