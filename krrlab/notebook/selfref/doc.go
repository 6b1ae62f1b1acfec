// Package selfref puts right what the interpreter gomacro makes of compiled types that refer
// to themselves through a slice or a map, such as
//
//	type Figure struct{ Panels []Figure }
//
// Meeting such a type in the midst of making it, gomacro takes it for one declared in a
// cell, of which reflection knows nothing, and goes on to approximate *Figure and
// []Figure by an empty interface: no function of a cell can return one, and in gophernotes a
// cell that shows one ends the kernel. But of a compiled type reflection knows all, and so
// Settle says.
package selfref
