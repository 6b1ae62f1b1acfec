package group

import "syscall"

// signalOnParentDeath makes the kernel send the command a signal when the thread that starts it ends, and so also when
// this process ends for any reason.
func signalOnParentDeath(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
