//go:build unix && !linux

package group

import "syscall"

// follow does nothing: a command outlives a process that is killed.
func follow(*syscall.SysProcAttr, syscall.Signal) {}
