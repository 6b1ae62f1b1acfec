// Package engine interprets the Go code of notebook cells. Each piece of a cell can use the names that earlier pieces
// declared.
//
// A piece of a cell (a unit) is a separate package. go/types checks it once, in a scope that contains the names of the
// earlier units; golang.org/x/tools/go/ssa builds it; ixgo executes it. Types keep their identity, so compiled code can
// call the methods of a type that a cell declared, and variables keep their address. Declaring a name again creates a
// new object for later units. There are two exceptions. A variable that is declared again with the same type is the
// same variable with a new value. A function that is declared again with the same type replaces the earlier one in all
// callers.
//
// A package that is not compiled into the program is interpreted if Engine.FindSource finds its source. Such a package
// is type-checked and initialized once. The functions of it that a later cell uses are compiled together with that
// cell.
package engine
