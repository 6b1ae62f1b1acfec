//go:build !unix

// Package group does nothing on systems without process groups.
package group

import (
	"os/exec"
	"syscall"
)

// Isolate does nothing.
func Isolate(*exec.Cmd) {}

// IsolateAndSignal does nothing. When its context ends, only the command itself is killed.
func IsolateAndSignal(*exec.Cmd, syscall.Signal) {}

// Kill does nothing.
func Kill(*exec.Cmd) {}

// EndWithProgram does nothing.
func EndWithProgram(*exec.Cmd) {}

// EndAll does nothing.
func EndAll() {}
