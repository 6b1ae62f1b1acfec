package baseline_test

import (
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

func draw(seed uint64, n, d int) *points.Dense {
	x := points.NewDense(n, d, nil)
	rng.New(seed).Normals(x.Data, 0)
	return x
}

func targets(seed uint64, n, t int) *mat.Dense {
	return mat.NewDense(n, t, draw(seed, n, t).Data)
}

// must returns v, and panics with an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// fails reports an error that does not say what it is to say, or that there is none.
func fails(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// panics reports a call that does not panic.
func panics(t *testing.T, name string, call func() error) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", name)
		}
	}()
	_ = call()
}

// near reports a value that is farther from the one wanted than off, or not a number.
func near(t *testing.T, label string, got, want, off float64) {
	t.Helper()
	if !(math.Abs(got-want) <= off) {
		t.Errorf("%s: %.15g, want %.15g, to %.3g", label, got, want, off)
	}
}

// sparse returns points with the numbers that are not zero alone.
func sparse(x *points.Dense) *points.CSR {
	s := &points.CSR{N: x.N, D: x.D, Ptr: []int{0}}
	for i := range x.N {
		for j, v := range x.Row(i) {
			if v != 0 {
				s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
			}
		}
		s.Ptr = append(s.Ptr, len(s.Col))
	}
	return s
}

// allocated returns the bytes that f allocates in all when it runs again, on one thread.
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
