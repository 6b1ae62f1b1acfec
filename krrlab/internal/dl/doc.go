// Package dl loads shared libraries, such as MPI and OpenBLAS, and calls their functions. The constant Available
// reports whether the program can do this; tests that need a library check it first. The build tag nodl builds a
// program that cannot load libraries.
package dl
