// Package testkit has helper functions for the tests of several packages: allocated memory, the JSON of a value
// without times, dense eigenvalues, a Python interpreter and others. Helpers for only one package are in the tests of
// that package.
package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
)

// AllocatedBytes returns the number of bytes that the second call of f allocates. It uses one thread and no garbage
// collection: each thread takes a workspace for products from a pool, so with several threads the number would depend
// on the scheduler and the collector.
func AllocatedBytes(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(1)
	f()
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	f()
	runtime.ReadMemStats(&end)
	return int64(end.TotalAlloc - start.TotalAlloc)
}

// AllocationCount returns the smallest of five results of testing.AllocsPerRun without garbage collection. A collection
// would empty the pools, and the caches of the runtime for type assertions grow at random times.
func AllocationCount(runs int, f func()) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	smallest := testing.AllocsPerRun(runs, f)
	for i := 1; i < 5 && smallest > 0; i++ {
		smallest = min(smallest, testing.AllocsPerRun(runs, f))
	}
	return smallest
}

// JSONWithoutTimes returns the JSON of v as maps, lists, strings and numbers. It omits the keys that depend on the
// clock, which contain "seconds" or begin with "best", and those for which drop returns true; drop may be nil.
// JSONWithoutTimes panics if v cannot be converted to JSON.
func JSONWithoutTimes(v any, drop func(key string, object map[string]any) bool) any {
	text, err := json.Marshal(v)
	if err == nil {
		v = nil
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		panic(err)
	}
	return removeKeys(v, func(key string, object map[string]any) bool {
		return strings.Contains(key, "seconds") || strings.HasPrefix(key, "best") || drop != nil && drop(key, object)
	})
}

// removeKeys removes the keys for which drop returns true from all objects in v.
func removeKeys(v any, drop func(key string, object map[string]any) bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			if drop(key, v) {
				delete(v, key)
				continue
			}
			v[key] = removeKeys(child, drop)
		}
	case []any:
		for i, child := range v {
			v[i] = removeKeys(child, drop)
		}
	}
	return v
}

// Python returns a Python interpreter that has the modules, which are separated by commas. It prefers the one of
// Debian to the one in the path. If there is none, it skips the test with a message that names the packages to
// install.
func Python(t testing.TB, modules, packages string) string {
	t.Helper()
	for _, interpreter := range []string{"/usr/bin/python3", "python3"} {
		const script = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1].split(', '))))"
		if exec.CommandContext(t.Context(), interpreter, "-c", script, modules).Run() == nil {
			return interpreter
		}
	}
	t.Skipf("no python3 with %s: apt-get install %s", modules, packages)
	return ""
}

// Panics reports an error for each call, by name, that does not panic.
func Panics(t testing.TB, calls map[string]func()) {
	t.Helper()
	for name, call := range calls {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

// AddRidge returns A + λI.
func AddRidge(a mat.Symmetric, lambda float64) *mat.SymDense {
	sum := mat.NewSymDense(a.SymmetricDim(), nil)
	sum.CopySym(a)
	for i := range a.SymmetricDim() {
		sum.SetSym(i, i, sum.At(i, i)+lambda)
	}
	return sum
}

// Eigenvalues returns the eigenvalues of A in ascending order.
func Eigenvalues(t testing.TB, a mat.Symmetric) []float64 {
	t.Helper()
	var eigen mat.EigenSym
	if !eigen.Factorize(a, false) {
		t.Fatal("no eigenvalues")
	}
	return eigen.Values(nil)
}

// PencilEigenvalues returns the eigenvalues of M⁻¹A in ascending order, computed as those of L⁻¹AL⁻ᵀ with M = LLᵀ.
func PencilEigenvalues(t testing.TB, a, m mat.Symmetric) []float64 {
	t.Helper()
	var chol mat.Cholesky
	if !chol.Factorize(m) {
		t.Fatal("M is not positive definite")
	}
	var l mat.TriDense
	chol.LTo(&l)
	var linvA, product mat.Dense
	if linvA.Solve(&l, a) != nil || product.Solve(&l, linvA.T()) != nil {
		t.Fatal("M is singular")
	}
	return Eigenvalues(t, Symmetric(&product))
}

// Symmetric returns (A+Aᵀ)/2.
func Symmetric(a mat.Matrix) *mat.SymDense {
	n, _ := a.Dims()
	symmetric := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			symmetric.SetSym(i, j, (a.At(i, j)+a.At(j, i))/2)
		}
	}
	return symmetric
}

// WithEigenvalues returns a = UDUᵀ with D = diag(v), so that v has the eigenvalues of a, and the random orthogonal
// matrix U.
func WithEigenvalues(seed uint64, v []float64) (a *mat.SymDense, u *mat.Dense) {
	n := len(v)
	var qr mat.QR
	qr.Factorize(mat.NewDense(n, n, Normals(seed, 0, n*n)))
	u = new(mat.Dense)
	qr.QTo(u)
	var product mat.Dense
	product.Mul(u, mat.NewDiagDense(n, v))
	product.Mul(&product, u.T())
	return Symmetric(&product), u
}

// Must returns v and panics if err is not nil. It is for calls that set up a test.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ErrOf returns the error of a call with two results.
func ErrOf[T any](_ T, err error) error { return err }

// Fails reports an error unless err is not nil and its text contains want.
func Fails(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// Contains reports an error for each part that is not in the text.
func Contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// Equal reports an error if got differs from want. description is printed with it.
func Equal[T comparable](t testing.TB, got, want T, description ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%v: %v, want %v", description, got, want)
	}
}

// Near reports an error if |got − want| exceeds tolerance, or is NaN. description is printed with it.
func Near(t testing.TB, got, want, tolerance float64, description ...any) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%v: %.15g, want %.15g, to %.3g", description, got, want, tolerance)
	}
}

// MaxAbs returns max|a_ij|.
func MaxAbs(a mat.Matrix) float64 { return max(mat.Max(a), -mat.Min(a)) }

// RelativeDifference returns the relative difference max|a_ij−b_ij| / max|b_ij|.
func RelativeDifference(a, b mat.Matrix) float64 {
	var difference mat.Dense
	difference.Sub(a, b)
	return MaxAbs(&difference) / MaxAbs(b)
}

// KolmogorovSmirnov returns the Kolmogorov–Smirnov statistic √m·sup|F_m − F| of the sample x of m numbers, which it
// sorts. For a sample from F it is above 2.7 with probability at most 2e^(−2·2.7²) = 9e-7.
func KolmogorovSmirnov(x []float64, cdf func(float64) float64) (sup float64) {
	slices.Sort(x)
	m := float64(len(x))
	for i, v := range x {
		p := cdf(v)
		sup = max(sup, p-float64(i)/m, float64(i+1)/m-p)
	}
	return math.Sqrt(m) * sup
}

// OK ends the test if err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// CheckCancellation runs f with contexts that are canceled at their first, second, … call of Err, until f calls Err
// fewer times. Each run with a canceled context must return the error of the context, and the last run must return nil.
func CheckCancellation(t testing.TB, f func(ctx context.Context) error) {
	t.Helper()
	for calls := int64(0); ; calls++ {
		parent, cancel := context.WithCancel(context.Background())
		ctx := &cancelingContext{Context: parent, cancel: cancel}
		ctx.remaining.Store(calls)
		err := f(ctx)
		cancel()
		switch completed := ctx.remaining.Load() >= 0; {
		case completed && (err != nil || calls == 0):
			t.Fatalf("after %d calls of Err, and no cancellation: %v, want a call and no error", calls, err)
		case completed:
			return
		case !errors.Is(err, context.Canceled):
			t.Fatalf("canceled at call %d of Err (counted from 0): %v, want the error of the context", calls, err)
		}
	}
}

// cancelingContext is a context that is canceled at a call of Err after some calls have returned nil.
type cancelingContext struct {
	context.Context
	cancel    func()
	remaining atomic.Int64 // number of calls of Err before the cancellation
}

// Err implements context.Context.
func (c *cancelingContext) Err() error {
	if c.remaining.Add(-1) < 0 {
		c.cancel()
	}
	return c.Context.Err()
}
