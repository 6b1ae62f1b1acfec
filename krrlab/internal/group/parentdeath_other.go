//go:build unix && !linux

package group

import "syscall"

// signalOnParentDeath does nothing: on this system a command keeps running when this process is killed.
func signalOnParentDeath(*syscall.SysProcAttr, syscall.Signal) {}
