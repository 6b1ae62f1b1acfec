//go:build !linux

package comm

// affinity returns the processors that a process, 0 for this one, may run on.
func affinity(int) [cpuWords]uint64 { return everyCPU() }
