//go:build unix && !linux

package group

import "syscall"

// follow does nothing: on this system a command keeps running when this process is killed.
func follow(*syscall.SysProcAttr, syscall.Signal) {}
