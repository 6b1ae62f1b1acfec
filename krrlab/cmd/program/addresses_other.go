//go:build !linux

package program

// spareAddresses does nothing: only glibc's malloc reserves many addresses.
func spareAddresses() {}
