// Package accel owns the machine: its threads, the BLAS and LAPACK found at run
// time, and the vectorised loops of the project's own.
package accel
