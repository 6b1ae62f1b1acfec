package accel

import (
	"context"
	"runtime"
	"testing"
)

// TestMeasureRate checks that MeasureRate makes two calls with a time limit of 0, one to warm up and one that is timed,
// and that a canceled context gives no rate.
func TestMeasureRate(t *testing.T) {
	calls := 0
	if r := MeasureRate(t.Context(), 0, 1e-3, func() { calls++ }); calls != 2 || !(r > 0 && r <= 1e6) {
		t.Errorf("%d calls, rate %g", calls, r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rates := func() []float64 {
		return []float64{ReadRate(ctx, 1<<16, 0), GemmRate32(ctx, 20, 0), GemmRate64(ctx, 20, 0), TouchRate(ctx, 1<<16)}
	}
	for i, r := range rates() {
		if !(r > 0) {
			t.Errorf("rate %d is %g", i, r)
		}
	}
	cancel()
	for i, r := range rates() {
		if r != 0 {
			t.Errorf("rate %d of a context that is done is %g", i, r)
		}
	}
	if panicOf(func() { GemmRate32(ctx, 0, 0) }) == nil {
		t.Error("products of order 0 do not panic")
	}
}

// TestProcessorSeconds checks that the processor time of the process increases while it works.
func TestProcessorSeconds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not every system reports the processor time")
	}
	for before := ProcessorSeconds(); !(ProcessorSeconds() > before); {
		sink.Add(1)
	}
}
