// Package testkit has what tests of several packages need: what a function allocates, the JSON of a
// value without its times, dense eigenvalues, and a Python. It is for tests only. What one package alone needs stays
// with its tests.
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

// Allocated returns the bytes that f allocates in all when it runs again, on one thread: each thread has its
// own workspace for products, kept in a pool, and how many come to need one, and when, is the
// scheduler's and the collector's choice.
func Allocated(f func()) int64 {
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

// Allocs is the least of five of testing.AllocsPerRun while nothing is collected: a collection empties the pools, and
// the runtime's caches of type assertions grow now and then, by chance.
func Allocs(runs int, f func()) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	least := testing.AllocsPerRun(runs, f)
	for i := 1; i < 5 && least > 0; i++ {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}

// Timeless returns the JSON of v as maps, lists, texts and numbers, without the keys that depend on the clock
// and those that drop names; drop may be nil. It panics if v has no JSON.
func Timeless(v any, drop func(key string, of map[string]any) bool) any {
	b, err := json.Marshal(v)
	if err == nil {
		v = nil
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		panic(err)
	}
	return without(v, func(key string, of map[string]any) bool {
		return strings.Contains(key, "seconds") || strings.HasPrefix(key, "best") || drop != nil && drop(key, of)
	})
}

func without(v any, drop func(key string, of map[string]any) bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, w := range v {
			if drop(key, v) {
				delete(v, key)
				continue
			}
			v[key] = without(w, drop)
		}
	case []any:
		for i, w := range v {
			v[i] = without(w, drop)
		}
	}
	return v
}

// Python returns an interpreter that has the modules, separated by commas, Debian's before the one in the path. Without
// one it skips the test, and says which packages have them.
func Python(t testing.TB, modules, packages string) string {
	t.Helper()
	for _, p := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(t.Context(), p, "-c", "import "+modules).Run() == nil {
			return p
		}
	}
	t.Skipf("no python3 with %s: apt-get install %s", modules, packages)
	return ""
}

// Panics reports the calls, by name, that do not panic.
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

// Plus returns A + λI.
func Plus(a mat.Symmetric, lambda float64) *mat.SymDense {
	s := mat.NewSymDense(a.SymmetricDim(), nil)
	s.CopySym(a)
	for i := range a.SymmetricDim() {
		s.SetSym(i, i, s.At(i, i)+lambda)
	}
	return s
}

// Eigenvalues returns those of A, ascending.
func Eigenvalues(t testing.TB, a mat.Symmetric) []float64 {
	t.Helper()
	var eig mat.EigenSym
	if !eig.Factorize(a, false) {
		t.Fatal("no eigenvalues")
	}
	return eig.Values(nil)
}

// Pencil returns the eigenvalues of M⁻¹A, ascending: those of L⁻¹AL⁻ᵀ, M = LLᵀ.
func Pencil(t testing.TB, a, m mat.Symmetric) []float64 {
	t.Helper()
	var chol mat.Cholesky
	if !chol.Factorize(m) {
		t.Fatal("M is not positive definite")
	}
	var l mat.TriDense
	chol.LTo(&l)
	var b, c mat.Dense
	if b.Solve(&l, a) != nil || c.Solve(&l, b.T()) != nil {
		t.Fatal("M is singular")
	}
	return Eigenvalues(t, Symmetric(&c))
}

// Symmetric returns (A+Aᵀ)/2.
func Symmetric(a mat.Matrix) *mat.SymDense {
	n, _ := a.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, (a.At(i, j)+a.At(j, i))/2)
		}
	}
	return s
}

// Designed returns UDUᵀ with the eigenvalues v and a random orthogonal U, and U.
func Designed(seed uint64, v []float64) (a *mat.SymDense, u *mat.Dense) {
	n := len(v)
	var qr mat.QR
	qr.Factorize(mat.NewDense(n, n, Normals(seed, 0, n*n)))
	u = new(mat.Dense)
	qr.QTo(u)
	var ud mat.Dense
	ud.Mul(u, mat.NewDiagDense(n, v))
	ud.Mul(&ud, u.T())
	return Symmetric(&ud), u
}

// Must returns v of a call that a test begins with, and panics with its error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ErrOf returns the error of a call.
func ErrOf[T any](_ T, err error) error { return err }

// Fails reports an error that does not say what it is to say, or that there is none.
func Fails(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// Contains reports the parts that a text lacks.
func Contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// Equal fails where a value of something is not the one wanted.
func Equal[T comparable](t testing.TB, got, want T, of ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%v: %v, want %v", of, got, want)
	}
}

// Near fails where a value of something is farther from the one wanted than off, or not a number.
func Near(t testing.TB, got, want, off float64, of ...any) {
	t.Helper()
	if !(math.Abs(got-want) <= off) {
		t.Errorf("%v: %.15g, want %.15g, to %.3g", of, got, want, off)
	}
}

// MaxAbs returns max|a_ij|.
func MaxAbs(a mat.Matrix) float64 { return max(mat.Max(a), -mat.Min(a)) }

// Apart returns max|a_ij−b_ij| / max|b_ij|.
func Apart(a, b mat.Matrix) float64 {
	var d mat.Dense
	d.Sub(a, b)
	return MaxAbs(&d) / MaxAbs(b)
}

// KS returns √m·sup|F_m − F| of a sample, which it sorts: above 2.7 with probability 2e^(−2·2.7²) = 9e-7.
func KS(x []float64, cdf func(float64) float64) (sup float64) {
	slices.Sort(x)
	m := float64(len(x))
	for i, v := range x {
		f := cdf(v)
		sup = max(sup, f-float64(i)/m, float64(i+1)/m-f)
	}
	return math.Sqrt(m) * sup
}

// OK ends the test with an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Canceled runs f with contexts that end when they are asked for the first time, the second, … until f asks no more:
// until then f must return their error.
func Canceled(t testing.TB, f func(ctx context.Context) error) {
	t.Helper()
	for ends := int64(0); ; ends++ {
		under, cancel := context.WithCancel(context.Background())
		ctx := &ending{Context: under, cancel: cancel}
		ctx.left.Store(ends)
		err := f(ctx)
		cancel()
		switch whole := ctx.left.Load() >= 0; {
		case whole && (err != nil || ends == 0):
			t.Fatalf("of a context that does not end, asked %d times: %v", ends, err)
		case whole:
			return
		case !errors.Is(err, context.Canceled):
			t.Fatalf("of a context that ends at question %d: %v", ends, err)
		}
	}
}

// ending is a context that is canceled when it is asked for its error after some answers.
type ending struct {
	context.Context
	cancel func()
	left   atomic.Int64
}

func (e *ending) Err() error {
	if e.left.Add(-1) < 0 {
		e.cancel()
	}
	return e.Context.Err()
}
