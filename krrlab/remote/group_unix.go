//go:build unix

package remote

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a launcher into a process group of its own: what a terminal, or Jupyter, sends to ours
// is for us, and the launcher hears of it once.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
