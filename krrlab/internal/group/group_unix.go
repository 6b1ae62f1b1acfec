//go:build unix

// Package group starts commands in separate process groups. A signal that a terminal or Jupyter sends to the group of
// this process then does not reach the commands, and a command can be ended together with its child processes.
package group

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Isolate makes a command that has not been started run in a new process group. It replaces cmd.SysProcAttr.
func Isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// SignalOnCancel isolates a command, and makes its process group get the signal when the context of the command ends.
// It sets cmd.Cancel. On Linux, the command itself also receives the signal when this process is killed.
func SignalOnCancel(cmd *exec.Cmd, sig syscall.Signal) {
	Isolate(cmd)
	signalOnParentDeath(cmd.SysProcAttr, sig)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, sig) }
}

// Kill kills the process group of a command that has been started.
func Kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// KillWithProgram makes the process group of a command, which has been started, end with this program, in whatever way
// the program ends. A shell in that group reads from a pipe that only this program holds open, and kills the group when
// the pipe ends. Child processes that have left the group continue.
func KillWithProgram(cmd *exec.Cmd) error {
	readEnd, writeEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer readEnd.Close()
	watcher := exec.Command("sh", "-c", "read line; kill -s KILL 0")
	watcher.Stdin, watcher.SysProcAttr = readEnd, &syscall.SysProcAttr{Setpgid: true, Pgid: cmd.Process.Pid}
	if err := watcher.Start(); err != nil {
		_ = writeEnd.Close()
		return err
	}
	go func() { // the pipe stays open until the group is killed
		_ = watcher.Wait()
		_ = writeEnd.Close()
	}()
	return nil
}

var (
	mu         sync.Mutex
	background = map[int]bool{} // groups of commands that have ended, but whose child processes may still run
)

// EndWithProgram makes EndAll kill the process group of a command, which has ended, if some of its child processes
// still run.
func EndWithProgram(cmd *exec.Cmd) {
	if cmd.Process == nil {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	background[cmd.Process.Pid] = true
	for pid := range background { // forget empty groups: their number may be reused
		if syscall.Kill(-pid, 0) != nil {
			delete(background, pid)
		}
	}
}

// EndAll kills the process groups that EndWithProgram has recorded. The program calls it before it exits.
func EndAll() {
	mu.Lock()
	defer mu.Unlock()
	for pid := range background {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	clear(background)
}
