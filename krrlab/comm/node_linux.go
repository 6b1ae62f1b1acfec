package comm

import "golang.org/x/sys/unix"

// affinity returns the processors that this process may run on.
func affinity() (mask [cpuWords]uint64) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return everyCPU()
	}
	for i := range 64 * cpuWords {
		if set.IsSet(i) {
			mask[i/64] |= 1 << (i % 64)
		}
	}
	return mask
}
