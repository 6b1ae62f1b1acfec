package group

import "syscall"

// signalOnParentDeath makes the kernel send the command a signal when this process ends for any reason.
func signalOnParentDeath(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
