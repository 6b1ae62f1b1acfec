//go:build !darwin

package accel

func physicalMemory() uint64 { return 0 }

func cpuModel() string { return "" }
