// Package solve is the stage that solves (K+λI)C = Y. It has the System to solve, the function Run, and the Solution
// with its lines, table, figure and JSON. krrlab.Lab.Solve builds a System from its Config and provides the
// MatrixBuilder, which makes K̃ and M.
//
// A solve has up to four steps:
//
//	iterate   (block) conjugate gradients                          run.go
//	direct    or a dense Cholesky factorization                    direct.go
//	refine    until K itself, not only K̃, meets the tolerance      refine.go
//	certify   bound the error, and decide which criterion was met  certify.go
//
// K̃ is the stored kernel matrix, whose entries may be rounded to float32 or 16 bits, or dropped. A = K+λI, or K̃+λI in
// the iteration, M is the preconditioner, τ the tolerance of the relative residual, and C (n×t) the coefficients.
//
// If true residuals are computed with K in float64 from the start, package pcg restarts with them, and no refinement is
// needed. Otherwise they are computed with K̃, rows of K in float64 estimate their error, and an answer that these rows
// do not confirm is refined: with K̃ and a smaller tolerance if at least half of τ remains for it, else with a
// recomputed K. Policy has every number that controls these decisions, with its trade-off.
package solve
