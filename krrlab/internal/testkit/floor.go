package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
)

// Rates are what the machine can do on all threads: bytes read from memory and flops of matrix products a second.
type Rates struct{ Read, Gemm32, Gemm64 float64 }

// MeasureRates measures them in about a second.
func MeasureRates() Rates {
	ctx, window := context.Background(), 400*time.Millisecond
	return Rates{
		Read:   accel.ReadRate(ctx, 512<<20, window),
		Gemm32: accel.GemmRate32(ctx, 2048, window),
		Gemm64: accel.GemmRate64(ctx, 1536, window),
	}
}

// FastBLAS puts OpenBLAS to use until the benchmark ends, where the machine has it.
func FastBLAS(b *testing.B) {
	if lib, err := accel.OpenBLAS(); err == nil {
		accel.Use(lib)
		b.Cleanup(func() { accel.Use(nil) })
	}
}

// Floor runs the loop of a benchmark between two measurements of the rates and reports, as x-floor, the least time
// of a call over the floor: the time to read those bytes or for those flops, whichever takes longest.
func Floor(b *testing.B, bytes, flops32, flops64 float64, f func() error) {
	b.Helper()
	rates := MeasureRates()
	least := time.Duration(1 << 62)
	for b.Loop() {
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(start))
	}
	floor := func(r Rates) float64 { return max(bytes/r.Read, flops32/r.Gemm32, flops64/r.Gemm64) }
	// other work on the machine only lowers the rates
	b.ReportMetric(least.Seconds()/min(floor(rates), floor(MeasureRates())), "x-floor")
}

// EachBLAS runs a test with Go's own BLAS, and with OpenBLAS where there is one.
func EachBLAS(t *testing.T, run func(t *testing.T)) {
	t.Run("go", run)
	t.Run("openblas", func(t *testing.T) {
		lib, err := accel.OpenBLAS()
		if err != nil {
			t.Skip(err)
		}
		accel.Use(lib)
		defer accel.Use(nil)
		run(t)
	})
}
