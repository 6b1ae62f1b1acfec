// Package race lets several preconditioners M_1 … M_r run for the same system AX = Y, A = K+λI, side by side,
// and says which of them is done first. Each is a plain pcg.Solve of its own; what they share are the
// products with A, the dear part: the directions of all stand in one panel P, and one AP serves them all. Use
// it where a guess would choose between preconditioners, or between one and none: how fast conjugate
// gradients converge is seen after some iterations, and hardly before.
//
// # The course
//
// M = I starts at once, as it costs nothing to build. Every step, Decide predicts for each runner the
// iterations to τ from the residuals it has had (Forecast), and the seconds from those:
//
//	what building M still takes + iterations × (AP and M⁻¹R of all t right-hand sides, both measured).
//
// An M that is not built is built where its predicted end comes before that of the best of those that run. A
// runner that cannot win rests, and is taken up again should the others come to a halt: none is given up
// before the race is over, so that the only one that converges is never lost. The race is over when even at
// worst the best of them is done before any other could be, or when one has reached τ.
//
// For t > 1 each runs for one combination of the columns of Y with random signs, and the answer to that is of
// no use to the solve that follows; for t = 1 that goes on from Result.State where the winner stands, bit for
// bit, or is done.
//
// # What depends on the clock
//
// Decide is a function of numbers alone, some of which are measured seconds: who wins may differ between
// two runs. What a runner computes does not: its iterates have the bits that it has alone, wherever a column
// of a product with A does not depend on those beside it, as with gram.Matrix. On ranks all decide by the
// seconds of the first (Options.Share).
//
// # References
//
// M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49
// (1952). H. Avron, K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using sketching and
// preconditioning, SIAM J. Matrix Anal. Appl. 38 (2017), doi:10.1137/16M1105396.
package race
