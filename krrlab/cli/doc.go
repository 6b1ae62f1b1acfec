// Package cli implements the krrlab command and its subcommands; krrlab help lists them.
//
// Main runs one command line and returns its exit code: 0 for success, 1 for an
// error (one line on the error stream), 2 for an invalid command line, 3 for a solve
// that did not converge (all results are written), 130 when interrupted. Results go to
// the output stream. Progress, one line that updates in place, goes to the error stream
// if that is a terminal and --quiet is not set.
//
// The package does not read environment variables and does not load a BLAS. The main
// package does both, and passes the results in Env.
package cli
