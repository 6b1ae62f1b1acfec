//go:build unix

package program

import (
	"os/signal"
	"syscall"
)

// ignoreFileLimit makes a write beyond the limit of file sizes (ulimit -f) an ordinary error, instead of a signal that
// ends the program.
func ignoreFileLimit() { signal.Ignore(syscall.SIGXFSZ) }
