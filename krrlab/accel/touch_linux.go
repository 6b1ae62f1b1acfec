package accel

import "golang.org/x/sys/unix"

// fresh maps memory that no one has touched, on pages of 2 MiB or of the usual size, and returns what unmaps it.
func fresh(size int, large bool) ([]byte, func()) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil
	}
	advice := unix.MADV_NOHUGEPAGE
	if large {
		advice = unix.MADV_HUGEPAGE
	}
	if err := unix.Madvise(b, advice); err != nil && large {
		_ = unix.Munmap(b)
		return nil, nil
	}
	return b, func() { _ = unix.Munmap(b) }
}
