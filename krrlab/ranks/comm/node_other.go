//go:build !linux

package comm

// affinity returns the mask of processors that a process may run on; pid 0 means this process.
func affinity(int) [cpuWords]uint64 { return everyCPU() }
