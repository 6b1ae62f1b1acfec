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

// randomPoints returns n normally distributed points of R^d.
func randomPoints(seed uint64, n, d int) *points.Dense {
	x := points.NewDense(n, d, nil)
	rng.New(seed).Normals(x.Data, 0)
	return x
}

// randomTargets returns an n×t matrix of normally distributed numbers.
func randomTargets(seed uint64, n, t int) *mat.Dense {
	return mat.NewDense(n, t, randomPoints(seed, n, t).Data)
}

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// expectError reports an error unless err is not nil and its text contains want.
func expectError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// expectPanic reports an error if call does not panic.
func expectPanic(t *testing.T, name string, call func() error) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", name)
		}
	}()
	_ = call()
}

// expectNear reports an error unless got differs from want by at most tolerance.
func expectNear(t *testing.T, label string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %.15g, want %.15g, to %.3g", label, got, want, tolerance)
	}
}

// toCSR returns the points in CSR format, without the zeros.
func toCSR(x *points.Dense) *points.CSR {
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

// allocatedBytes returns the total number of bytes that f allocates when it is called again, on one thread.
func allocatedBytes(f func()) int64 {
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
