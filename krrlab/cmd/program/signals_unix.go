//go:build unix

package program

import (
	"os/signal"
	"syscall"
)

// ignoreFileLimit makes a write beyond the limit of file sizes (ulimit -f) an error like any
// other, instead of a signal that ends the program.
func ignoreFileLimit() { signal.Ignore(syscall.SIGXFSZ) }
