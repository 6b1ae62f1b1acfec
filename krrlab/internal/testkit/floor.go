package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
)

// Rates are the speeds of the machine with all threads: bytes per second for reads from memory, and floating-point
// operations per second for matrix products in float32 and float64.
type Rates struct{ Read, Gemm32, Gemm64 float64 }

// MeasureRates measures the Rates of this machine in about a second.
func MeasureRates() Rates {
	// The buffer exceeds the caches, and the orders of the matrices are large enough for the full speed of the BLAS.
	const bufferBytes, order32, order64 = 512 << 20, 2048, 1536
	ctx, window := context.Background(), 400*time.Millisecond // time for each measurement
	return Rates{
		Read:   accel.ReadRate(ctx, bufferBytes, window),
		Gemm32: accel.GemmRate32(ctx, order32, window),
		Gemm64: accel.GemmRate64(ctx, order64, window),
	}
}

// FastBLAS selects OpenBLAS, if the machine has it, until the benchmark ends.
func FastBLAS(b *testing.B) {
	if lib, err := accel.OpenBLAS(); err == nil {
		UseBLAS(b, lib)
	}
}

// BenchmarkFloor runs the loop of a benchmark between two measurements of the rates. It reports as x-floor the shortest
// time of a call divided by a lower bound: the time to read the given bytes or to do the given operations, whichever
// takes longest.
func BenchmarkFloor(b *testing.B, bytes, flops32, flops64 float64, call func() error) {
	b.Helper()
	rates := MeasureRates()
	shortest := time.Duration(1 << 62)
	for b.Loop() {
		start := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		shortest = min(shortest, time.Since(start))
	}
	lowerBound := func(r Rates) float64 { return max(bytes/r.Read, flops32/r.Gemm32, flops64/r.Gemm64) }
	// Other load on the machine only lowers the measured rates, so the measurement with the higher ones is used.
	b.ReportMetric(shortest.Seconds()/min(lowerBound(rates), lowerBound(MeasureRates())), "x-floor")
}

// UseBLAS selects a library, or with nil the BLAS in Go, until the test ends. Then it selects the previous BLAS again.
func UseBLAS(t testing.TB, lib *accel.Library) {
	accel.CurrentBLAS() // selects by KRRLAB_BLAS if no BLAS has been selected yet
	previous := accel.UseLibrary(lib)
	t.Cleanup(func() { accel.UseLibrary(previous) })
}

// EachBLAS runs a test with the BLAS in Go, and with OpenBLAS if there is one.
func EachBLAS(t *testing.T, run func(t *testing.T)) {
	t.Run("go", func(t *testing.T) {
		UseBLAS(t, nil)
		run(t)
	})
	t.Run("openblas", func(t *testing.T) {
		lib, err := accel.OpenBLAS()
		if err != nil {
			t.Skip(err)
		}
		UseBLAS(t, lib)
		run(t)
	})
}
