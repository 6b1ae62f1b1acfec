package group

import "syscall"

// signalOnParentDeath makes the kernel send the command a signal when the thread that starts it ends, and so also when
// this process ends for any reason. The Go runtime keeps its threads until the process ends, except for the thread of a
// goroutine that ends while it is locked to its thread; such a goroutine must not start the command.
func signalOnParentDeath(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
