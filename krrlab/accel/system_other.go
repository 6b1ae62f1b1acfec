//go:build !darwin

package accel

// physicalMemory returns 0: the memory of the machine is read from /proc/meminfo.
func physicalMemory() uint64 { return 0 }

// cpuModel returns "": the name of the processor is read from /proc/cpuinfo.
func cpuModel() string { return "" }
