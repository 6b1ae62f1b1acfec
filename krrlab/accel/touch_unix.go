//go:build linux || darwin

package accel

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// TouchRate returns the bytes per second at which all Threads() write to memory for the first time, one byte in each
// page: the quickest part of four of a new mapping of that many bytes (or an eighth of the memory available if that is
// less), which is given back to the system. No part is given back before the last one is written, or the system would
// return the same pages. It is 0 if ctx is done first, and where there is no such mapping.
func TouchRate(ctx context.Context, bytes int) (rate float64) {
	const parts = 4
	if a := MemoryAvailable(); a > 0 {
		bytes = min(bytes, int(a/8))
	}
	page := os.Getpagesize()
	stretch := max(page, bytes/parts/Threads()/page*page) // of a thread
	m, err := unix.Mmap(-1, 0, parts*Threads()*stretch, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Munmap(m) }()
	for part := 0; part < parts && ctx.Err() == nil; part++ {
		start := time.Now()
		_ = ForEach(ctx, Threads(), func(_, i int) {
			first := (part*Threads() + i) * stretch
			for b := first; b < first+stretch; b += page {
				m[b] = 1
			}
		})
		rate = max(rate, float64(Threads()*stretch)/max(time.Since(start).Seconds(), 1e-9))
	}
	return rate
}
