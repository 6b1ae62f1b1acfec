package baseline_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/baseline"
	"github.com/krrlab/lab/krrlab/rng"
)

// allocated returns the bytes that f allocates in all when it runs again, on one thread: each thread has a
// workspace of its own for products, kept in a pool, and how many come to need one, and when, is the
// scheduler's and the collector's choice.
func allocated(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(1)
	f()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestNeeds: all that a method allocates, scratch that lives shortly too, is at most 1.5 times what it
// said it needs, and what it says is no gross exaggeration.
func TestNeeds(t *testing.T) {
	ctx := context.Background()
	x := draw(41, 3000, 4)
	y := wave(x, 2)
	m := sample(t, gaussian, 4, 900)
	for name, f := range map[string]func() (int64, error){
		"features": func() (int64, error) {
			r, err := baseline.RandomFeatures(ctx, m, x, 0.1, y, nil)
			return r.Bytes, err
		},
		"features streamed": func() (int64, error) {
			r, err := baseline.RandomFeatures(ctx, m, x, 0.1, y, &baseline.FeatureOptions{Stream: true})
			return r.Bytes, err
		},
		"sweep": func() (int64, error) {
			r, err := baseline.RandomFeaturesSweep(ctx, gaussian, x, 0.1, y, []int{100, 500, 900}, rng.New(1), nil)
			return r.Bytes, err
		},
		"admm": func() (int64, error) {
			a, err := baseline.NewADMM(ctx, m, x, 0.1, y, baseline.Square, nil)
			if err != nil {
				return 0, err
			}
			r, err := a.Solve(ctx, &baseline.ADMMSolve{MaxIter: 20})
			return r.Bytes, err
		},
	} {
		var need int64
		got := allocated(func() {
			var err error
			if need, err = f(); err != nil {
				t.Fatal(name, err)
			}
		})
		if got > need+need/2 || got < need/4 {
			t.Errorf("%s: %d bytes allocated, %d needed", name, got, need)
		}
	}
}
