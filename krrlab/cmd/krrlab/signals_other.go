//go:build !unix

package main

// ignoreFileLimit does nothing: there is no such limit on this system.
func ignoreFileLimit() {}
