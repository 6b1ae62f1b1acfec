// Package testbed runs preconditioners on many problems and compares them by performance profiles.
//
// A run is one random draw of one preconditioner on one problem, with one ridge λ and one rank. It measures the
// iterations of conjugate gradients to the relative residuals 1e-2, 1e-3, …, 1e-6, with at most MaxIter iterations
// (smaller powers of ten count too, if the last iteration reaches them), and also κ, seconds, bytes and flops. A run is
// stored as a Line, one line of JSON in a file. Lines are added while runs are made, the file survives if the program
// is killed, and lines from other machines can be added. A preconditioner must not depend on the targets.
//
// The work is a measure that does not depend on the machine. It is the number of flops of forming M and of the
// iterations, in units of 2n², the flops of a product of K with a vector:
//
//	work = (flops of M + iterations·(2n² + flops of M⁻¹r)) / 2n².
//
// The performance profile of a preconditioner for a measure (Dolan and Moré, Math. Program. 91 (2002), DOI
// 10.1007/s101070100263) is the share of problems for which its measure is at most ρ times the smallest measure of all
// preconditioners, as a function of ρ. Each pair of a problem and a λ counts as one problem. On each of them a
// preconditioner counts with its best rank and with the median of its draws; it has failed if more than half of its
// draws do not converge.
package testbed
