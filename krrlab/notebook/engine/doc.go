// Package engine interprets Go piece by piece, each seeing the names of those before it.
//
// A piece of a notebook's cell is a separate package: go/types checks it once, with the names of
// earlier pieces around its own scope, golang.org/x/tools/go/ssa builds it, and ixgo executes it. Types
// keep their identity, so that compiled code sees the methods of a type declared in a cell, and
// variables their address. A name declared again is another object, which later pieces see; a
// variable declared again with the same type is the same variable with another value, and a
// function declared again with the same type is called instead of the earlier one.
//
// A package that is not compiled into the program is interpreted where Find knows its source: checked and initialized
// once, and compiled, as far as they use it, with the pieces of later cells.
package engine
