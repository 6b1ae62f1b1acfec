//go:build !unix

package program

// ignoreFileLimit does nothing: there is no such limit on this system.
func ignoreFileLimit() {}
