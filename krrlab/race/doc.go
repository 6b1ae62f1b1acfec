// Package race runs conjugate gradients with several preconditioners M_1 … M_r for the same system AX = Y,
// A = K+λI, side by side, and says which finishes first. Each runner is a plain pcg.Solve of its own. They share the
// products with A, the expensive part: the directions of all form one panel P, and one AP serves them all. Use
// it to choose between preconditioners, or between one and none: how fast conjugate
// gradients converge shows only after some iterations.
//
// # The course
//
// M = I starts at once, as it costs nothing to build. Every step, Decide predicts for each runner the
// iterations to τ from the residuals it has had (Forecast), and the seconds from those:
//
//	what building M still takes + iterations × (AP and M⁻¹R of all t right-hand sides, both measured).
//
// An M is built if its predicted end comes before that of the best runner. A
// runner that cannot win rests, and continues if the others stall. None is given up
// before the race ends, so the only one that converges is never lost. The race ends when even at
// worst the best runner finishes before any other could, or when one has reached τ.
//
// For t > 1 each runs on one combination of the columns of Y with random signs, whose answer is of
// no use to the solve that follows. For t = 1 that solve continues from Result.State, bit for bit where the winner
// stopped, or is done.
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
