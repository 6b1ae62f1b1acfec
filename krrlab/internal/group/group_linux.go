package group

import "syscall"

// follow makes the kernel send a command a signal when this process ends, however it does.
func follow(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
