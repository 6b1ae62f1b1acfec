//go:build linux || darwin

package accel

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// TouchRate measures the rate at which all Threads() together write to memory for the first time, in bytes per second:
// the system then provides each page, which takes much of the time in which a large matrix is formed. The threads write
// one byte in each page of a new mapping of the given number of bytes (or an eighth of the available memory if that is
// less). The mapping is written in four parts, and TouchRate returns the rate of the fastest one, because other
// programs can only slow a part down. All of it is released at the end: if each part were released at once, the system
// could provide its pages again. TouchRate returns 0 if ctx is done first or the system does not provide the mapping.
func TouchRate(ctx context.Context, bytes int) (rate float64) {
	const parts = 4
	if available := MemoryAvailable(); available > 0 {
		bytes = min(bytes, int(available/8))
	}
	page := os.Getpagesize()
	threadBytes := max(page, bytes/parts/Threads()/page*page) // bytes per thread and part
	mapping, err := unix.Mmap(-1, 0, parts*Threads()*threadBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Munmap(mapping) }()
	for i := 0; i < parts && ctx.Err() == nil; i++ {
		start := time.Now()
		_ = ForEach(ctx, Threads(), func(_, thread int) {
			firstByte := (i*Threads() + thread) * threadBytes
			for offset := firstByte; offset < firstByte+threadBytes; offset += page {
				mapping[offset] = 1
			}
		})
		rate = max(rate, float64(Threads()*threadBytes)/max(time.Since(start).Seconds(), 1e-9))
	}
	return rate
}
