// Package dl loads shared libraries, which MPI and OpenBLAS are, and calls their functions, where this program
// can: a test asks it before it starts what needs one. The tag nodl builds a program that loads none.
package dl
