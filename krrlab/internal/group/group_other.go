//go:build !unix

// Package group does nothing on systems without process groups.
package group

import (
	"os/exec"
	"syscall"
)

// Isolate does nothing.
func Isolate(*exec.Cmd) {}

// SignalOnCancel does nothing: when the context of the command ends, only the command is killed, without its child
// processes.
func SignalOnCancel(*exec.Cmd, syscall.Signal) {}

// KillWithProgram does nothing.
func KillWithProgram(*exec.Cmd) error { return nil }

// Kill does nothing.
func Kill(*exec.Cmd) {}

// EndWithProgram does nothing.
func EndWithProgram(*exec.Cmd) {}

// EndAll does nothing.
func EndAll() {}
