//go:build !unix

// Package group does nothing where there are no process groups.
package group

import (
	"os/exec"
	"syscall"
)

// Own does nothing.
func Own(*exec.Cmd) {}

// Cancel does nothing: the context's end ends the command alone.
func Cancel(*exec.Cmd, syscall.Signal) {}

// Kill does nothing.
func Kill(*exec.Cmd) {}

// Leave does nothing.
func Leave(*exec.Cmd) {}

// EndAll does nothing.
func EndAll() {}
