package comm

import "golang.org/x/sys/unix"

// affinity returns the mask of processors that a process may run on; pid 0 means this process.
func affinity(pid int) (mask [cpuWords]uint64) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return everyCPU()
	}
	for i := range 64 * cpuWords {
		if set.IsSet(i) {
			mask[i/64] |= 1 << (i % 64)
		}
	}
	return mask
}
