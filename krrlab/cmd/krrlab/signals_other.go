//go:build !unix

package main

func ignoreFileLimit() {}
