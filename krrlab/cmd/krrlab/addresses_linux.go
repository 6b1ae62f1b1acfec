package main

import (
	"os"
	"syscall"
)

// spareAddresses restarts the program with MALLOC_ARENA_MAX=1 in the environment if the address space is limited
// (ulimit -v). glibc's malloc, which reads this variable once before main, otherwise reserves up to 128 MiB of
// addresses for each thread, although Go allocates its memory without malloc.
func spareAddresses() {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &r); err != nil || r.Cur >= 1<<60 {
		return
	}
	const name = "MALLOC_ARENA_MAX"
	isSet := os.Getenv(name) == "1"
	os.Setenv(name, "1")
	if self, err := os.Executable(); err == nil && !isSet {
		_ = syscall.Exec(self, os.Args, os.Environ())
	}
}
