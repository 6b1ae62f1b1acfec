package accel

import "golang.org/x/sys/unix"

// physicalMemory returns the bytes of memory of the machine, or 0 if the system does not report them.
func physicalMemory() uint64 {
	bytes, _ := unix.SysctlUint64("hw.memsize")
	return bytes
}

// cpuModel returns the name of the processor, or "" if the system does not report it.
func cpuModel() string {
	brand, _ := unix.Sysctl("machdep.cpu.brand_string")
	return brand
}
