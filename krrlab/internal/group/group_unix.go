//go:build unix

// Package group starts commands in separate process groups, with what they start: what a terminal, or Jupyter,
// sends to this process's group does not reach them, and they can be ended together.
package group

import (
	"os/exec"
	"syscall"
)

// Own puts a command that is about to be started into a separate group.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Cancel does so too, and sends a signal to the group when the context of the command ends, and under Linux to the
// command when this process is killed.
func Cancel(cmd *exec.Cmd, sig syscall.Signal) {
	Own(cmd)
	follow(cmd.SysProcAttr, sig)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, sig) }
}

// Kill ends the group of a command that was started.
func Kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
