//go:build !unix

package npy

import "os"

// mapFile reads a file into memory.
func mapFile(name string) ([]byte, error) { return os.ReadFile(name) }
