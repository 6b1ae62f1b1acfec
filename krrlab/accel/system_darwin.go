package accel

import "golang.org/x/sys/unix"

func physicalMemory() uint64 {
	n, _ := unix.SysctlUint64("hw.memsize")
	return n
}

func cpuModel() string {
	s, _ := unix.Sysctl("machdep.cpu.brand_string")
	return s
}
