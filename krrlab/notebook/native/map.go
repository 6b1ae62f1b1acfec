package native

import (
	"os"
	"syscall"
)

// inherited is a file of the parent's, which programs that this one starts do not get: it would not end with this one.
func inherited(fd uintptr, name string) *os.File {
	syscall.CloseOnExec(int(fd))
	return os.NewFile(fd, name)
}

// mapped is a piece of a file as memory shared.
func mapped(f *os.File, at int64, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), at, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

func unmap(b []byte) { _ = syscall.Munmap(b) }
