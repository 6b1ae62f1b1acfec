package group

import "syscall"

// follow makes the kernel send the command a signal when this process ends for any reason.
func follow(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
