//go:build nodl || !((linux || darwin) && !android && (amd64 || arm64))

// Package dl says whether this program can load shared libraries, which MPI and OpenBLAS are. A test
// asks it before it starts what needs one: the tag nodl builds a program that loads none.
package dl

// Able reports whether this program can load shared libraries.
const Able = false
