// Package native compiles cells of a notebook.
//
// The declarations of a cell become a package. Together with a small server loop (Serve), it becomes a program, which
// the go command builds. The program runs as a child process of the kernel. Its functions are called through two pipes,
// several at a time. Slices are passed in memory that both processes have mapped, for example whole tiles of a kernel
// matrix at once. However the kernel ends, nothing of the program remains: its file is removed as soon as it runs, the
// memory has no name, and the process ends when the pipe is closed.
//
// In the session, a compiled cell is replaced by its Stub: a cell that declares the same types, constants, functions
// and methods, with bodies that call the program. The arguments and results of such functions can be numbers, strings,
// bools, slices of float64, and structs of these; results can also be errors. Arguments and receivers are copies. If a
// call changes elements of a slice, the caller sees the changes.
package native
