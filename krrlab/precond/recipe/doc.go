// Package recipe provides the preconditioners M ≈ K+λI that have names on command lines and in files, one in each
// source file. A recipe is a struct whose fields are its options. Its methods compute M, and predict the cost of M and
// the number of iterations; Propose lists the options that a plan should consider. At the end of the file, a call
// registers a [stage.Kind] with the name; [stage.KindNames] lists the names.
//
// λ_p is the ridge of the preconditioner, which may differ from the ridge λ of the problem.
//
// # How to add one
//
// No other code refers to the name of a kind. A user-defined preconditioner is a type with the methods String and Make,
// and a call of [stage.RegisterPreconditioner]. After that, its name works for --precond, compare, race, JSON and MPI
// runs. With the method Cost of [cost.Preconditioner], plans predict its seconds and bytes; with Iterations and Propose
// ([cost.IterationPredictor] and [cost.Proposer]), they can choose it.
//
// # How to choose
//
// If the eigenvalues of K decay, rpcholesky needs the fewest columns. If they do not, because the kernel is narrow, use
// vecchia. docs/laboratory.md has measurements of all kinds on about 40 problems.
//
// # References
//
// Avron, Clarkson and Woodruff, SIAM J. Matrix Anal. Appl. 38 (2017), Algorithms 1 and 2; Frangella, Tropp and Udell,
// SIAM J. Matrix Anal. Appl. 44 (2023), DOI 10.1137/21M1466244; Chen, Epperly, Tropp and Webber, Commun. Pure Appl.
// Math. 78 (2025), DOI 10.1002/cpa.22234.
package recipe
