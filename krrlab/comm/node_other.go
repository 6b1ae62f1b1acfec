//go:build !linux

package comm

// affinity returns the processors that this process may run on.
func affinity() [cpuWords]uint64 { return everyCPU() }
