// Package race runs conjugate gradients with several preconditioners M_1 … M_r, and with M = I, for the same system
// AX = Y, A = K+λI, side by side, and says which is done first. They are the columns of one pcg.Solve, each with its M,
// so that one product with A, the expensive part, serves them all.
//
// # The course
//
// Every M is built, and each racer has the clock that it would have alone:
//
//	seconds of building M + iterations × (AP and M⁻¹R of all t right-hand sides, both measured once).
//
// All iterate together. Once the first has reached τ, a racer that could not be there before by these clocks ends. So
// the first is found without a forecast.
//
// For t > 1 each runs on one combination of the columns of Y with random signs.
//
// # What depends on the clock
//
// Who wins may differ between two runs, as seconds are measured. What a runner computes does not: its iterates have the
// bits that it has alone, wherever a column of a product with A does not depend on those beside it, as with
// gram.Matrix. On ranks all go by the seconds of the first.
//
// # References
//
// M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49
// (1952). H. Avron, K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using sketching and
// preconditioning, SIAM J. Matrix Anal. Appl. 38 (2017), doi:10.1137/16M1105396.
package race
