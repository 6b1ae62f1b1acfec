package program

import (
	"os"
	"syscall"
)

// spareAddresses restarts the program with MALLOC_ARENA_MAX=1 in the environment if the address space is limited
// (ulimit -v). glibc's malloc, which reads this variable once before main, otherwise reserves up to 128 MiB of
// addresses for each thread, although Go allocates its memory without malloc.
func spareAddresses() {
	const unlimited = 1 << 60 // bytes; far more than a process can address, and less than RLIM_INFINITY
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil || limit.Cur >= unlimited {
		return
	}
	const name = "MALLOC_ARENA_MAX"
	isRestarted := os.Getenv(name) == "1" // this function has restarted the program already
	os.Setenv(name, "1")
	if self, err := os.Executable(); err == nil && !isRestarted {
		_ = syscall.Exec(self, os.Args, os.Environ()) // if it fails, the program runs as it is
	}
}
