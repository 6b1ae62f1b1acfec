// Package solve is the stage that solves (K+λI)C = Y: its System, Run, and the Solution with lines, table, picture and
// JSON. krrlab.Lab.Solve makes a System of its Config, and is the Source of K and M.
//
// A solve goes one way:
//
//	iterate   (block) conjugate gradients                          run.go
//	direct    or a dense Cholesky factor                        direct.go
//	refine    until K itself meets the tolerance                refine.go
//	certify   bounds of the error, and which criterion was met  certify.go
//
// Where true residuals are taken with K in float64 from the start, package pcg restarts by them, and there is nothing
// left to refine. Else they are taken with K as stored, rows of K in float64 estimate its error, and an answer that
// they do not confirm is refined: by K as stored to a smaller tolerance where half of τ is left for that, else by K
// recomputed. Policy has every number that decides which, with what it trades.
package solve
