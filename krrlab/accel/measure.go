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

// least is the share of a call that the process is on the processors at least where their seconds count: with less,
// nothing is known of them.
const least = 1. / 32

// Rate calls f, which does work units of something on all Threads(), once to warm up and then for about the window,
// and returns the best rate seen, in units per second: other processes can only make it slower. What they take of the
// processors does not count, where the system tells. It is 0 if ctx is done before a call ended.
func Rate(ctx context.Context, window time.Duration, work float64, f func()) float64 {
	rate := 0.0
	start := time.Now()
	for i := 0; ctx.Err() == nil && (i < 2 || time.Since(start) < window); i++ {
		t, before := time.Now(), ProcessorSeconds()
		f()
		took := max(time.Since(t).Seconds(), 1e-9)
		if i == 0 && took < window.Seconds() {
			start = time.Now()
			continue
		}
		if own := (ProcessorSeconds() - before) / float64(Threads()); own > took*least {
			took = min(took, own)
		}
		rate = max(rate, work/took)
	}
	return rate
}

// ReadRate measures for about the window the bytes per second at which memory is read by all
// Threads(), each summing its part of a buffer of that many bytes (or an eighth of the memory
// available if that is less), which should be well above what caches hold. It is 0 if ctx is done first.
func ReadRate(ctx context.Context, bytes int, window time.Duration) float64 {
	const word = 8
	threads, words := Threads(), bytes/word
	if a := MemoryAvailable(); a > 0 {
		words = min(words, max(1<<20, int(a/8/word)))
	}
	buf := make([]uint64, words)
	part := (words + threads - 1) / threads
	sweep := func(f func(s []uint64)) {
		// A done ctx ends the measurement between sweeps.
		_ = ForEach(context.Background(), threads, func(_, i int) {
			f(buf[min(i*part, words):min((i+1)*part, words)])
		})
	}
	sweep(func(s []uint64) { // each part touched first by a thread that reads it
		for i := range s {
			s[i] = uint64(i)
		}
	})
	return Rate(ctx, window, float64(words*word), func() {
		sweep(func(s []uint64) { sink.Add(sum(s)) })
	})
}

// sink keeps sums from being optimized away.
var sink atomic.Uint64

// sum adds up s; four chains of additions keep the loads, not the adders, busy.
func sum(s []uint64) uint64 {
	var a, b, c, d uint64
	for len(s) >= 16 {
		a += s[0] + s[4] + s[8] + s[12]
		b += s[1] + s[5] + s[9] + s[13]
		c += s[2] + s[6] + s[10] + s[14]
		d += s[3] + s[7] + s[11] + s[15]
		s = s[16:]
	}
	for _, v := range s {
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
