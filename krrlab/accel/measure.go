package accel

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
)

// MeasureRate measures how fast f runs, in units of work per second. One call of f does the given work, on all
// Threads(). MeasureRate calls f once to warm up and then repeatedly for about the window. It returns the rate of the
// fastest call, because other processes can only slow calls down, and do not disturb every call of about a millisecond.
// It returns 0 if ctx is done before the first timed call.
func MeasureRate(ctx context.Context, window time.Duration, work float64, f func()) (rate float64) {
	f()
	for start := time.Now(); ctx.Err() == nil && (rate == 0 || time.Since(start) < window); {
		callStart := time.Now()
		f()
		rate = max(rate, work/max(time.Since(callStart).Seconds(), 1e-9))
	}
	return rate
}

// ReadRate measures the rate at which all Threads() together read memory, in bytes per second. It takes about the
// window. The threads sum up blocks of 16 MB, one block after the other, each thread a part of it. The blocks form a
// buffer of the given number of bytes (or an eighth of the available memory if that is less), which should be much
// larger than the caches. ReadRate returns 0 if ctx is done first.
func ReadRate(ctx context.Context, bytes int, window time.Duration) float64 {
	const wordBytes, blockBytes = 8, 16 << 20
	if available := MemoryAvailable(); available > 0 {
		bytes = min(bytes, max(8<<20, int(available/8)))
	}
	buf := make([]uint64, bytes/wordBytes)
	words, offset := min(blockBytes, bytes)/wordBytes, 0
	threadWords := (words + Threads() - 1) / Threads()
	sweep := func(read func(data []uint64)) {
		block := buf[offset : offset+words]
		// A done ctx ends the measurement between sweeps.
		_ = ForEach(context.Background(), Threads(), func(_, i int) {
			read(block[min(i*threadWords, words):min((i+1)*threadWords, words)])
		})
		if offset += words; offset+words > len(buf) {
			offset = 0
		}
	}
	for range len(buf) / words {
		sweep(func(data []uint64) { // the thread that reads a part also writes it first
			for i := range data {
				data[i] = uint64(i)
			}
		})
	}
	return MeasureRate(ctx, window, float64(words*wordBytes),
		func() { sweep(func(data []uint64) { sink.Add(sum(data)) }) })
}

// sink keeps sums from being optimized away.
var sink atomic.Uint64

// sum adds up s in four streams, because loops over tiles also read several rows at a time.
func sum(s []uint64) uint64 {
	var a, b, c, d uint64
	n := len(s) / 32 * 8
	for s0, s1, s2, s3 := s[:n], s[n:2*n], s[2*n:3*n], s[3*n:4*n]; len(s0) >= 8; {
		a += s0[0] + s0[1] + s0[2] + s0[3] + s0[4] + s0[5] + s0[6] + s0[7]
		b += s1[0] + s1[1] + s1[2] + s1[3] + s1[4] + s1[5] + s1[6] + s1[7]
		c += s2[0] + s2[1] + s2[2] + s2[3] + s2[4] + s2[5] + s2[6] + s2[7]
		d += s3[0] + s3[1] + s3[2] + s3[3] + s3[4] + s3[5] + s3[6] + s3[7]
		s0, s1, s2, s3 = s0[8:], s1[8:], s2[8:], s3[8:]
	}
	for _, v := range s[4*n:] {
		a += v
	}
	return a + b + c + d
}

// GemmRate64 measures the floating-point operations per second of blas64.Gemm on n×n matrices, 2n³ operations each, on
// all Threads(). It takes about the window, or the time of two products if that is longer. It returns 0 if ctx is done
// first, and panics if n < 1.
func GemmRate64(ctx context.Context, n int, window time.Duration) float64 {
	return gemmRate(ctx, "GemmRate64", float64Routines(blas64.Implementation()), n, window)
}

// GemmRate32 is GemmRate64 for blas32.Gemm.
func GemmRate32(ctx context.Context, n int, window time.Duration) float64 {
	return gemmRate(ctx, "GemmRate32", float32Routines(blas32.Implementation()), n, window)
}

// gemmRate measures the routine routines.gemm; name is the name of the calling function for panics.
func gemmRate[T float](ctx context.Context, name string, routines level3Routines[T], n int,
	window time.Duration) float64 {
	if n < 1 {
		panic(fmt.Sprintf("accel: %s: n = %d < 1", name, n))
	}
	a, b, c := make([]T, n*n), make([]T, n*n), make([]T, n*n)
	for i := range a {
		a[i], b[i] = T(i%7), T(i%7)/2
	}
	return MeasureRate(ctx, window, 2*float64(n)*float64(n)*float64(n), func() {
		routines.gemm(blas.NoTrans, blas.Trans, n, n, n, 1, a, n, b, n, 0, c, n)
	})
}
