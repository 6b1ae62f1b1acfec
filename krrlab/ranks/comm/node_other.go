//go:build !linux

package comm

// affinityMask returns the mask of processors that a process may run on; pid 0 means this process. On this system the
// mask is unknown, and all processors are returned.
func affinityMask(int) [cpuWords]uint64 { return allCPUs() }
