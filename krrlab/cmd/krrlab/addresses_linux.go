package main

import (
	"os"
	"syscall"
)

// fewAddresses are what C's libraries are told where addresses are limited: glibc's malloc would
// take up to 128 MiB of them for each thread, though Go's memory is not C's, and OpenBLAS as much
// for each core.
var fewAddresses = []string{"MALLOC_ARENA_MAX", "OPENBLAS_NUM_THREADS"}

// spareAddresses begins anew with that in the environment where addresses are limited
// (ulimit -v): C's library reads it once, before main.
func spareAddresses() {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &r); err != nil || r.Cur >= 1<<60 {
		return
	}
	told := true
	for _, name := range fewAddresses {
		told = told && os.Getenv(name) == "1"
		os.Setenv(name, "1")
	}
	if self, err := os.Executable(); err == nil && !told {
		_ = syscall.Exec(self, os.Args, os.Environ())
	}
}
