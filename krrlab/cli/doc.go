// Package cli implements the krrlab command and its subcommands; krrlab help lists them.
//
// Main runs one command line and returns its exit code: 0 for success, 1 for an
// error (one line on the error stream), 2 for a command line that cannot be
// understood, 3 for a solve that did not converge (all results are written), 130
// when interrupted. Results go to the output stream; progress, one line that updates in
// place, goes to the error stream when that is a terminal and --quiet is not given.
//
// The package does not read environment variables and does not choose a BLAS. The main
// package does both, and passes the results in Env.
package cli
