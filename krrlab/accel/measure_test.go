package accel

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// TestMeasureRate checks that MeasureRate makes two calls with a window of 0, one to warm up and one that is timed,
// that the fastest call gives the rate, and that a canceled context gives no rate.
func TestMeasureRate(t *testing.T) {
	calls := 0
	if rate := MeasureRate(t.Context(), 0, 1e-3, func() { calls++ }); calls != 2 || !(rate > 0 && rate <= 1e6) {
		t.Errorf("%d calls, rate %g", calls, rate)
	}
	const window, slowCall = 20 * time.Millisecond, 50 * time.Millisecond
	calls = 0
	rate := MeasureRate(t.Context(), window, 1, func() {
		if calls++; calls != 2 {
			time.Sleep(slowCall)
		}
	})
	// A slow second call fills the window and is the only one that is timed.
	if calls == 3 && !(rate > 1/window.Seconds()) {
		t.Errorf("rate %g, of a call within the window: want more than %g", rate, 1/window.Seconds())
	}
	ctx, cancel := context.WithCancel(t.Context())
	rates := func() []float64 {
		return []float64{ReadRate(ctx, 1<<16, 0), GemmRate32(ctx, 20, 0), GemmRate64(ctx, 20, 0), TouchRate(ctx, 1<<16)}
	}
	for i, rate := range rates() {
		if !(rate > 0) {
			t.Errorf("rate %d is %g", i, rate)
		}
	}
	cancel()
	for i, rate := range rates() {
		if rate != 0 {
			t.Errorf("rate %d of a context that is done is %g", i, rate)
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
	before := ProcessorSeconds()
	for start := time.Now(); !(ProcessorSeconds() > before); sink.Add(1) {
		if time.Since(start) > time.Minute {
			t.Fatalf("the processor time is still %g s after a minute of work", before)
		}
	}
}
