// Package testbed runs preconditioners on many problems, and shows which is best how often.
//
// A run is one preconditioner of one draw on one problem, with one ridge λ and one rank: conjugate gradients to the
// relative residuals of pencil.Levels, with at most MaxIter iterations, beside κ, seconds, bytes and flops. It is a
// line of JSON, a Line, in a file that grows while runs are made, survives a kill, and takes lines that others made.
// Nothing of a preconditioner may depend on the targets.
//
// The measure that no machine changes is the work in products: the flops of making M and of the iterations, in units of
// one product of K with a vector, 2n²:
//
//	work = (flops of M + iterations·(2n² + flops of M⁻¹r)) / 2n².
//
// A performance profile (Dolan and Moré, Math. Program. 91 (2002), DOI 10.1007/s101070100263) of a measure is, for each
// preconditioner, the share of the problems on which it takes at most ρ times the least that any takes. A problem of it
// is a pair of problem and λ, a preconditioner has its best rank there, and the median of its draws; one that does not
// come through in half of them has failed.
package testbed
