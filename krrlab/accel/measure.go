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

// Rate calls f, which does work units of something on all Threads(), once to warm up and then for about the window,
// and returns the rate of the quickest call in units per second: other processes can only make calls slower, and leave
// some of a millisecond alone. It is 0 if ctx is done before a call ended.
func Rate(ctx context.Context, window time.Duration, work float64, f func()) (rate float64) {
	f()
	for start := time.Now(); ctx.Err() == nil && (rate == 0 || time.Since(start) < window); {
		t := time.Now()
		f()
		rate = max(rate, work/max(time.Since(t).Seconds(), 1e-9))
	}
	return rate
}

// ReadRate measures for about the window the bytes per second at which memory is read by all Threads(), each summing
// its part of a stretch of 16 MB, one after the other of a buffer of that many bytes (or an eighth of the memory
// available if that is less), which should be well above what caches hold. It is 0 if ctx is done first.
func ReadRate(ctx context.Context, bytes int, window time.Duration) float64 {
	const word, stretch = 8, 16 << 20
	if a := MemoryAvailable(); a > 0 {
		bytes = min(bytes, max(8<<20, int(a/8)))
	}
	buf := make([]uint64, bytes/word)
	words, at := min(stretch, bytes)/word, 0
	part := (words + Threads() - 1) / Threads()
	sweep := func(f func(s []uint64)) {
		of := buf[at : at+words]
		// A done ctx ends the measurement between sweeps.
		_ = ForEach(context.Background(), Threads(), func(_, i int) { f(of[min(i*part, words):min((i+1)*part, words)]) })
		if at += words; at+words > len(buf) {
			at = 0
		}
	}
	for range len(buf) / words {
		sweep(func(s []uint64) { // touched first by a thread that reads it
			for i := range s {
				s[i] = uint64(i)
			}
		})
	}
	return Rate(ctx, window, float64(words*word), func() { sweep(func(s []uint64) { sink.Add(sum(s)) }) })
}

// sink keeps sums from being optimized away.
var sink atomic.Uint64

// sum adds up s in four streams, as loops over tiles read several rows at a time.
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

// GemmRate64 measures the floating-point operations per second of
// blas64.Gemm on n×n matrices, 2n³ operations each, on all Threads(). It takes
// about the window, or two products if those are longer, and is 0 if ctx is
// done first. It panics if n < 1.
func GemmRate64(ctx context.Context, n int, window time.Duration) float64 {
	return gemmRate(ctx, "GemmRate64", of64(blas64.Implementation()), n, window)
}

// GemmRate32 is GemmRate64 for blas32.Gemm.
func GemmRate32(ctx context.Context, n int, window time.Duration) float64 {
	return gemmRate(ctx, "GemmRate32", of32(blas32.Implementation()), n, window)
}

func gemmRate[T real](ctx context.Context, name string, blasOf overridden[T], n int, window time.Duration) float64 {
	if n < 1 {
		panic(fmt.Sprintf("accel: %s: n = %d < 1", name, n))
	}
	a, b, c := make([]T, n*n), make([]T, n*n), make([]T, n*n)
	for i := range a {
		a[i], b[i] = T(i%7), T(i%7)/2
	}
	return Rate(ctx, window, 2*float64(n)*float64(n)*float64(n), func() {
		blasOf.gemm(blas.NoTrans, blas.Trans, n, n, n, 1, a, n, b, n, 0, c, n)
	})
}
