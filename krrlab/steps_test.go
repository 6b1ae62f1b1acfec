package krrlab

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
)

// TestMemoryOfLandmarks: K has what is left of the memory beside the points, eight blocks of as many
// columns as the targets, and the factor, of which there are two on the way.
func TestMemoryOfLandmarks(t *testing.T) {
	const n, d, s, columns, memory = 1000, 5, 60, 3, 4e6
	for kind, width := range map[string]int64{"float64": 8, "float32": 4} {
		train := classes(kinds(n, d, 6)[kind], columns)
		l := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1, Features: s, Precond: RPCholesky, Storage: gram.Float64, Memory: memory})
		_, err := l.Solve(t.Context())
		var full *gram.MemoryError
		if want := int64(memory - (8*n*s + 8*s*s) - 8*8*n*columns - width*n*d); !errors.As(err, &full) || full.Have != want {
			t.Errorf("%s: %v, want %d bytes for K", kind, err, want)
		}
	}
}

// TestCertainOfLandmarks: the bound of κ is that of the factor, and what M⁻¹ in float32 adds: it is that
// of M to a tenth, so that κ grows by (1+0.1)/(1−0.1) at most.
func TestCertainOfLandmarks(t *testing.T) {
	l := newLab(t, regression(kinds(200, 4, 6)["float64"]), Config{Kernel: gauss, Lambda: 0.1, Features: 30, Precond: RPCholesky, Solver: PCG})
	sol, err := l.Solve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.K(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.LowRank(t.Context(), a, 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := f.CondBound(l.cfg.Lambda, l.cfg.LambdaP) * 11 / 9; math.Abs(sol.KappaBound/want-1) > 1e-12 {
		t.Errorf("κ ≤ %g, want %g", sol.KappaBound, want)
	}
}

// TestRemaining: the time left is that of the iterations left, by the residual and by their number, at
// the mean time of those done.
func TestRemaining(t *testing.T) {
	var got Event
	l := newLab(t, regression(kinds(50, 3, 1)["float64"]), Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-4, MaxIter: 30, Monitor: func(e Event) { got = e }})
	before := time.Now()
	watch := l.watchSolve()
	after := time.Now()
	time.Sleep(20 * time.Millisecond)
	for _, c := range []struct {
		index int
		rel   float64
		left  float64 // iterations
	}{{2, 0.5, -1}, {10, 1, -1}, {10, 1e-2, 10}, {10, 1e-1, 20}, {10, 1e-5, 0}} {
		least := time.Since(after)
		if err := watch(&pcg.Iteration{Index: c.index, MaxRelRes: c.rel}); err != nil {
			t.Fatal(err)
		}
		most := time.Since(before)
		low, high := time.Duration(c.left*float64(least)/float64(c.index)), time.Duration(c.left*float64(most)/float64(c.index))
		if c.left < 0 {
			low, high = -1, -1
		}
		if e := time.Duration(1000); got.Remaining < low-e || got.Remaining > high+e {
			t.Errorf("%+v: %v, want %v to %v", c, got.Remaining, low, high)
		}
	}
}
