// Package native compiles cells of a notebook.
//
// The declarations of a cell become a package, and that with a small loop (Serve) a program, which the go command
// builds. The program runs beside the kernel; its functions are called through two pipes, several at a time, and slices
// travel by memory that both have mapped, whole tiles of a kernel matrix at once. Nothing of it is left when the kernel
// ends, however that comes: the program is removed from the disk as soon as it runs, the memory has no name, and the
// end of the pipe ends the process.
//
// To the session a compiled cell is one that declares the same types, constants, functions and methods, with bodies
// that call the program (Stub). What can be sent: numbers, strings, bools, slices of float64, structs of these, and
// errors as results. Arguments and receivers are copies; elements of slices that a call has changed are changed for the
// caller, too.
package native
