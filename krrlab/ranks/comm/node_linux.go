package comm

import "golang.org/x/sys/unix"

// affinityMask returns the mask of processors that a process may run on; pid 0 means this process. If the mask is
// unknown, it returns the mask of all processors.
func affinityMask(pid int) (mask [cpuWords]uint64) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return allCPUs()
	}
	for i := range 64 * cpuWords {
		if set.IsSet(i) {
			mask[i/64] |= 1 << (i % 64)
		}
	}
	return mask
}
