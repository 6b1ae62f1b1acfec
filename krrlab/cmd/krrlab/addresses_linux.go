package main

import (
	"os"
	"syscall"
)

// spareAddresses restarts with MALLOC_ARENA_MAX=1 in the environment where addresses are limited (ulimit -v):
// glibc's malloc, which reads it once, before main, would take up to 128 MiB of them for each thread, though Go's
// memory is not C's.
func spareAddresses() {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &r); err != nil || r.Cur >= 1<<60 {
		return
	}
	const name = "MALLOC_ARENA_MAX"
	told := os.Getenv(name) == "1"
	os.Setenv(name, "1")
	if self, err := os.Executable(); err == nil && !told {
		_ = syscall.Exec(self, os.Args, os.Environ())
	}
}
