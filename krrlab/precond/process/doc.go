// Package process is a preconditioner in another process, in any language.
//
// The process is a shell command that reads its standard input and writes its standard output; its standard error is
// free, and its last lines are in the errors. A message is a line of words and, for some, an array in NumPy's .npy
// format (package npy), as numpy.lib.format reads and writes it; numbers are float64 in answers, C order. It
// begins with
//
//	krrlab 1 N D T LAMBDA SEED
//
// of n points of dimension d, t right-hand sides, and λ of A = K+λI. To build M the process asks, each followed by the
// array that is given in brackets, and gets an array:
//
//	points               X, n×d; with weights the last column is their root, and K has them
//	columns [J]          K(:, J), n×len(J), J integers
//	neighbors COUNT      n×COUNT; row i: the COUNT j < i of largest |K_ij|/√(K_ii·K_jj), nearest first; −1: none
//	product [V]          K·V for V n×k, without λ
//
// It ends with a line of what it can do, "ready" or "ready normal", and then is asked
//
//	solve [R]            M⁻¹R for R n×k
//	normal SEED          a draw of N(0, M), n×1, if it said normal
//
// until its input ends. It may ask again before it answers, with a line "answer" and the array. A line "error TEXT"
// says that it cannot. It is ended where it takes longer than Options.Timeout to be ready, or to answer. M must be
// symmetric positive definite; without normal κ of M⁻¹A has a bound from below only.
package process
