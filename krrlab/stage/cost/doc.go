// Package cost predicts what ways to solve (K+λI)C = Y take, in seconds and bytes, by counts and the rates of a machine:
// what each stage takes, what a rank holds in memory, what ranks exchange, and which part is in the way where no number
// of ranks is enough. It holds no data; only Measure runs anything.
//
// A Model is a problem and a machine, a Candidate a way to solve it. What a preconditioner costs its kind says by the
// method Cost (package recipe); package plan chooses among candidates.
//
// # What a rank holds
//
// Of n points in R^d with t right-hand sides and s features, on P ranks:
//
//	points X             all of them                8nd, 4nd in float32, nd in bytes, 12 a nonzero
//	kernel K             1/P of its tiles           w·n²/(2P), w = 8, 4, 2 or 0 bytes an entry
//	features Z           1/P of the rows            4ns/P
//	landmark factor F    1/P of the rows            4ns/P, and as much on the way
//	factor of ZᵀZ+λ_pI   all, or 1/P from s = 2,049 8s² or 8s²/P, twice that while it is formed
//	vectors              all of them                80nt
//
// K, Z and a large factor shrink with P, the others do not. The largest at once is either the forming of the
// factor, when there is no K yet (with landmarks there is), or the solve.
//
// # How to choose
//
// Take one rank for each machine and let its threads share the work: what does not shrink is
// then held once a machine. With P machines of M bytes, w·n²/(2P) ≈ M gives P; the points are
// negligible as long as 4dP ≪ n. Where the factor is in the way, take fewer features, landmarks
// (a better preconditioner of the same width), or machines with more memory. Bytes are those of
// the numbers; the program itself takes some 0.1 GB, and Go's collector what it is left.
//
// # References
//
// docs/sizing.md has the paper's runs (plan.Machines.Scale, Model.Traffic), and docs/adr/0010 why the points are whole on
// each rank.
package cost
