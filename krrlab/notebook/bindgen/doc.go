// Package bindgen writes the Go source that links compiled packages into the notebook's
// interpreter, and the documentation that the notebook shows for them.
//
// The table of a package is that of gomacro, the interpreter of gophernotes; the kernel of krrlab reads it too: its
// functions, variables and constants as reflect.Values, and its types as reflect.Types. Without the proxies that
// gomacro has besides, no type of a cell in gophernotes implements an interface of ours. Packages are read by their
// export data, as the compiler wrote it, and by their source for the comments.
//
// What the interpreter cannot carry, an exported generic or a constraint, is an error.
//
// Of the standard library, which the interpreter brings in the state of Go 1.18, what came
// since then and is not generic is added.
//
// To write the bindings and the documentation again after an exported name changed:
//
//	go generate ./krrlab/notebook/bindgen
//
// The generator is a test, which writes the bindings or compares those in git with what it would write. It does not
// import them, so that it runs when they no longer compile. The documentation is written into a file that git ignores
// (make build does so): comments change with every commit, and nothing depends on them but what the notebook shows.
package bindgen

//go:generate go test -count=1 -run TestBindings -update .
//go:generate go test -count=1 -run TestDocs -update .
