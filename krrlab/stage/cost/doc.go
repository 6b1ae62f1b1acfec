// Package cost predicts the seconds, memory and traffic of methods for solving (K+λI)C = Y, from operation counts and
// the rates of a machine. It predicts the seconds of each stage, the memory of a rank (a process of a distributed run),
// the bytes that ranks exchange, and the memory of a rank that does not shrink with the number of ranks. A Model holds
// no data; only Measure and MeasureNetwork measure anything.
//
// A Model describes a problem and a machine, a Candidate a method for solving the problem. Each kind of preconditioner
// predicts its own costs with the method Cost (package recipe). Package plan chooses among candidates.
//
// # Memory of a rank
//
// For n points in R^d with t right-hand sides and a preconditioner M = ZZᵀ+λ_pI with an n×s matrix Z, on P ranks, a
// rank stores:
//
//	points X             all of them                8nd, 4nd in float32, nd in bytes, 12 per nonzero
//	kernel K             1/P of its tiles           w·n²/(2P), w = 8, 4, 2 or 0 bytes per entry
//	features Z           1/P of the rows            4ns/P
//	landmark factor F    1/P of the rows            4ns/P, twice that while it is formed
//	factor of ZᵀZ+λ_pI   all, or 1/P if s > 2,048   8s² or 8s²/P, twice that while it is formed
//	vectors              all of them                80nt
//
// K, Z and a large factor shrink with P, the other parts do not. The peak of memory occurs during the solve, or while
// the factor is formed. The factor is formed before K if Z has random features, and after K if Z has landmarks.
//
// # How to choose
//
// Run one rank on each machine and let its threads share the work, so that the parts that do not shrink are stored once
// per machine. With w bytes per entry of K and P machines of b bytes of memory each, solve w·n²/(2P) ≈ b for P; the
// points are negligible as long as 4dP ≪ n. If the factor does not fit, use fewer features, landmarks (a better
// preconditioner of the same width), or machines with more memory. The predicted bytes count numerical data only. The
// program itself takes some 0.1 GB, and Go's garbage collector uses whatever memory remains.
//
// # References
//
// docs/sizing.md compares predictions with the published seconds of Avron, Clarkson and Woodruff (SIAM J. Matrix Anal.
// Appl. 38(4), 2017, doi:10.1137/16M1105396), and docs/adr/0010 explains why each
// rank stores all points.
package cost
