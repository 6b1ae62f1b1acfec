//go:build !unix

package npy

import "os"

// mmap reads a file into memory, because mapping files is implemented on Unix only.
func mmap(name string) ([]byte, error) { return os.ReadFile(name) }
