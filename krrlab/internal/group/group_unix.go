//go:build unix

// Package group starts commands in separate process groups, with what they start: what a terminal, or Jupyter,
// sends to this process's group does not reach them, and they can be ended together.
package group

import (
	"os/exec"
	"sync"
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

var (
	mu         sync.Mutex
	background = map[int]bool{} // groups of commands that have ended and left processes
)

// Leave notes the group of a command that has ended, if it has left processes in the background, for EndAll.
func Leave(cmd *exec.Cmd) {
	if cmd.Process == nil {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	background[cmd.Process.Pid] = true
	for pid := range background { // the number of an empty group may become another's
		if syscall.Kill(-pid, 0) != nil {
			delete(background, pid)
		}
	}
}

// EndAll ends what commands have left in the background.
func EndAll() {
	mu.Lock()
	defer mu.Unlock()
	for pid := range background {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	clear(background)
}
