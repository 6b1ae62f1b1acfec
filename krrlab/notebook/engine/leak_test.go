package engine

import (
	"fmt"
	"runtime"
	"testing"
)

// TestUnreferencedUnitsAreReleased declares the same names repeatedly, and checks that objects without references are
// released: the second half of the cells may leave at most 2,000 bytes each.
func TestUnreferencedUnitsAreReleased(t *testing.T) {
	e, run := openEngine(t)
	heapBytes := func() int64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	var bytesAtHalf int64
	const n = 600
	for i := range n {
		if i == n/2 {
			bytesAtHalf = heapBytes()
		}
		code := fmt.Sprintf("func f(x int) int { return g(x) + %d }\nfunc g[T any](x T) T { return x }", i)
		if i%2 == 1 {
			code = fmt.Sprintf("v := []float64{%d}\nh := func() int { return f(1) }", i)
		}
		if got := run(code); got != "" {
			t.Fatalf("%s prints %q", code, got)
		}
	}
	if grownBytes := heapBytes() - bytesAtHalf; grownBytes > n/2*2000 {
		t.Errorf("%d cells left %d bytes, %d units", n/2, grownBytes, len(e.units))
	} else {
		t.Logf("%d cells left %d bytes, %d units", n/2, grownBytes, len(e.units))
	}
}
