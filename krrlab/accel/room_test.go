package accel

import (
	"runtime"
	"testing"
)

// TestFitting: threads by what is left, callers' buffers first, within half of it.
func TestFitting(t *testing.T) {
	const size, stack = 128, 8
	for _, c := range []struct {
		left    int64
		callers int
		want    int
	}{
		{0, 1, 1}, // its buffer is held
		{255, 2, 0},
		{256, 2, 1},
		{527, 2, 1},
		{528, 2, 2}, // 128 + 136
		{1 << 20, 8, 8},
		{2 * (7*128 + 3*136), 8, 4},
	} {
		if got := fitting(c.left, size, stack, c.callers); got != c.want {
			t.Errorf("%d left, %d callers: %d threads, want %d", c.left, c.callers, got, c.want)
		}
	}
}

// TestAddressLimit: of a limit on addresses those that hold no memory are not for data.
func TestAddressLimit(t *testing.T) {
	m := fake(map[string]string{"/proc/meminfo": meminfo}, addressLimit(3<<30, 2<<30, 1<<29))
	limit, _ := m.memoryLimit()
	if avail := m.memoryAvailable(); limit != 3<<29 || avail != 1<<30 {
		t.Errorf("limit %d, available %d", limit, avail)
	}
	if l := addressLimit(1<<30, 2<<30, 1<<20); l.bytes != 1 {
		t.Errorf("used up: %+v", l)
	}
}

// TestRoomWanted: each thread that OpenBLAS begins with takes its own.
func TestRoomWanted(t *testing.T) {
	want := map[string]int64{
		"A=1\x00OPENBLAS_NUM_THREADS=1\x00B=2": roomToLoad,
		"OPENBLAS_NUM_THREADS=x":               roomToLoad + int64(runtime.NumCPU()-1)*(roomToLoad/2+stackSize()),
		"":                                     roomToLoad + int64(runtime.NumCPU()-1)*(roomToLoad/2+stackSize()),
	}
	for env, want := range want {
		if got := fake(map[string]string{"/proc/self/environ": env}).roomWanted(); got != want {
			t.Errorf("%q: %d, want %d", env, got, want)
		}
	}
}
