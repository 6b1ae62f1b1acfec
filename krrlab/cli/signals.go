package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// EndSignals returns the signals that end a command in good order, with what was done kept: an
// interrupt, SIGTERM, and SIGHUP unless the process was started to outlive its terminal, as by nohup.
func EndSignals() []os.Signal {
	s := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		s = append(s, syscall.SIGHUP)
	}
	return s
}
