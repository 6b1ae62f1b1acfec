// Package process provides a preconditioner that another process computes, in any language.
//
// The process is a shell command that reads requests from its standard input and writes to its standard output. Its
// standard error is free for messages; the last lines of it appear in error messages. A message of the protocol is a
// line of words, in some cases followed by an array in NumPy's .npy format (package npy), which numpy.lib.format reads
// and writes. Numbers in answers are float64, in C order. The first message is
//
//	krrlab 1 N D T LAMBDA SEED
//
// for n points of dimension d, t right-hand sides, and λ of A = K+λI. To construct M, the process sends the following
// requests. Some are followed by an array, in brackets; each is answered by an array:
//
//	points               X, n×d; with weights, the last column has their square roots, and K includes them
//	columns [J]          K(:, J), n×len(J), J integers
//	neighbors COUNT      n×COUNT; row i: the COUNT j < i of largest |K_ij|/√(K_ii·K_jj), nearest first; −1: none
//	product [V]          K·V for V n×k, without λ
//
// When M is complete, the process sends a line with its abilities, "ready" or "ready normal". From then on it receives
// the requests
//
//	solve [R]            M⁻¹R for R n×k
//	normal SEED          a draw of N(0, M), n×1, if it said normal
//
// until its input ends. It answers with a line "answer" and the array, and may send requests before that. A line "error
// TEXT" reports that it cannot answer. The process is killed if it is not ready, or does not answer, within
// Options.Timeout. On Unix, its child processes end with it, and all of them end with this program, even if that is
// killed, except for child processes that have left the process group of the command. M must be symmetric positive
// definite. Without "normal", only a lower bound of κ of M⁻¹A is available.
package process
