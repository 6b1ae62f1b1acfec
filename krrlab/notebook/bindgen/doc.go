// Package bindgen generates the Go source that links compiled packages into the notebook's interpreter, and the
// documentation that the notebook shows for them.
//
// The table of a package has the format of gomacro, the interpreter of gophernotes; the kernel of krrlab reads this
// format, too. It contains the functions, variables and constants as reflect.Values and the types as reflect.Types.
// The proxies that gomacro also supports are omitted; as a consequence, types declared in cells of gophernotes do not
// implement interfaces of bound packages. The packages are loaded from the export data of the compiler, and their
// comments from the source.
//
// An exported object that the interpreter does not support (a generic function or type, or a constraint) is an error.
//
// The interpreter has its own table of the standard library, which is that of Go 1.18. Newer names are added, except
// generic ones.
//
// After an exported name has changed, update the bindings and the documentation with
//
//	go generate ./krrlab/notebook/bindgen
//
// The generator is a test. It writes the bindings, or compares the committed ones with the generated ones. It does not
// import the bindings, so it also runs if they no longer compile. The documentation is written to a file that git
// ignores (make build does this): comments change with every commit, and they affect only the texts that the notebook
// shows.
package bindgen

//go:generate go test -count=1 -run TestBindings -update .
//go:generate go test -count=1 -run TestDocs -update .
