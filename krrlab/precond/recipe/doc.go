// Package recipe has the preconditioners M ≈ K+λI that have names on command lines and in files, one in each file. A
// recipe is a struct whose fields are its options; its methods say how M is made, what that costs, how many iterations to
// expect and what a plan may propose of it. A Kind, at the end of the file, gives it its name:
//
//	features    M = ZZᵀ+λ_pI, Z random features: the paper's preconditioner
//	nystrom     M = FFᵀ+λ_pI, F of landmarks drawn uniformly
//	rpcholesky  M = FFᵀ+λ_pI, F by randomly pivoted Cholesky
//	vecchia     a sparse inverse on the neighbors of each point, if asked for beside some pivots
//	process:    M of another program
//	none        M = I
//
// # How to add one
//
// Nothing else knows the name of a kind. A user-defined one is a type with String and Make, and a call of
// [stage.RegisterPreconditioner]. It then is a name for --precond, compare, race, JSON and ranks. With the method Cost of
// [cost.Preconditioner] plans tell its seconds and bytes, with Iterations and Propose
// (IterationPredictor and Proposer) they choose it.
//
// # How to choose
//
// Where K's eigenvalues decay, rpcholesky needs the fewest columns; where they do not, because the kernel is narrow,
// vecchia. docs/laboratory.md has measurements of all on some 40 problems.
//
// # References
//
// Avron, Clarkson and Woodruff, SIAM J. Matrix Anal. Appl. 38 (2017), Algorithms 1 and 2; Frangella, Tropp and Udell,
// SIAM J. Matrix Anal. Appl. 44 (2023), DOI 10.1137/21M1466244; Chen, Epperly, Tropp and Webber, Commun. Pure Appl. Math.
// 78 (2025), DOI 10.1002/cpa.22234.
package recipe
