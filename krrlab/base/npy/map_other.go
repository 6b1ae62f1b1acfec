//go:build !unix

package npy

import "os"

// mapped reads a file into memory.
func mapped(name string) ([]byte, error) { return os.ReadFile(name) }
