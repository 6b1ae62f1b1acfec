//go:build unix

package native

import (
	"os"
	"syscall"
)

// mapped is a piece of a file as memory shared.
func mapped(f *os.File, at int64, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), at, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

func unmap(b []byte) { _ = syscall.Munmap(b) }
