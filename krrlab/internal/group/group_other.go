//go:build !unix

// Package group does nothing on systems without process groups.
package group

import (
	"os/exec"
	"syscall"
)

// Own does nothing.
func Own(*exec.Cmd) {}

// Cancel does nothing. When its context ends, only the command itself is killed.
func Cancel(*exec.Cmd, syscall.Signal) {}

// Kill does nothing.
func Kill(*exec.Cmd) {}

// Leave does nothing.
func Leave(*exec.Cmd) {}

// EndAll does nothing.
func EndAll() {}
