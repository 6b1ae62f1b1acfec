package native

import (
	"os"
	"syscall"
)

// inheritedFile returns a file inherited from the parent. Programs that this process starts do not inherit the file,
// because they would keep it open after this process has ended.
func inheritedFile(fd uintptr, name string) *os.File {
	syscall.CloseOnExec(int(fd))
	return os.NewFile(fd, name)
}

// mapMemory maps a part of a file into memory, shared with other processes. offset and size are in bytes.
func mapMemory(file *os.File, offset int64, size int) ([]byte, error) {
	return syscall.Mmap(int(file.Fd()), offset, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

// unmapMemory unmaps memory that mapMemory has mapped. It does nothing if memory is nil.
func unmapMemory(memory []byte) { _ = syscall.Munmap(memory) }
