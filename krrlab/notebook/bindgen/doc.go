// Package bindgen writes the Go source that links compiled packages into the notebook's
// interpreter, and the documentation that the notebook shows for them.
//
// The table of a package is that of gomacro, the interpreter of gophernotes; the kernel of krrlab reads it too: its
// functions, variables and constants as reflect.Values, its types as reflect.Types, and, for gophernotes alone, a proxy
// struct for each interface (so that types declared in a cell can implement it) and the methods that a struct owes to an
// embedded field. Packages are read by their export data, as the compiler wrote it, and by their source for the
// comments.
//
// What the interpreter cannot carry is an error: an exported generic, a constraint, an
// interface whose methods cannot be written outside of its package.
//
// Of the standard library, which the interpreter brings in the state of Go 1.18, what came
// since then and is not generic is added.
//
// To bring everything up to date after an exported name changed:
//
//	go generate ./krrlab/notebook/bindgen
//
// All of it is a test, which writes the bindings or compares them with what it would write: no program needs it, and
// it does not import them, so that it runs when they no longer compile.
package bindgen

//go:generate go test -count=1 -run TestBindings -update .
