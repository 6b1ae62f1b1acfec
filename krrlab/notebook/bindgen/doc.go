// Package bindgen writes the Go source that links compiled packages into the notebook's
// interpreter, and the documentation that the notebook shows for them.
//
// The table of a package is that of gomacro, the interpreter of gophernotes; the kernel of krrlab reads it too: its
// functions, variables and constants as reflect.Values, its types as reflect.Types, a proxy struct for each interface
// (so that types declared in a cell can implement it), and the methods that a struct owes to an embedded field. Load
// reads packages by their export data, as the compiler wrote it, and by their source for the comments; Source writes
// the table of one package, Docs its documentation.
//
// What the interpreter cannot carry is an error: an exported generic, a constraint, an
// interface whose methods cannot be written outside of its package. Names that are to be
// left out stand in Skip, each with its reason, and a name there that need not be skipped
// is an error too.
//
// Of the standard library, which the interpreter brings in the state of Go 1.18, StdFiles adds what came
// since then and is not generic.
//
// To bring everything up to date after an exported name changed:
//
//	go generate ./krrlab/notebook/bindgen
//
// The test writes them (generate_test.go, docs_test.go): in the program packages that a user adds take Load and Table
// only. It compares what is in krrlab/notebook/bindings with what it would write. It does not import the bindings, and
// so runs when they no longer compile.
package bindgen

//go:generate go test -count=1 -run TestBindings -update .
