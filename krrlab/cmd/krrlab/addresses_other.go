//go:build !linux

package main

// spareAddresses does nothing: only glibc's malloc reserves many addresses.
func spareAddresses() {}
