package accel

import "testing"

// library returns OpenBLAS, or skips the test if it is not installed.
func library(t testing.TB) *Library {
	t.Helper()
	l, err := OpenBLAS()
	if err != nil {
		t.Skip("libopenblas.so.0 not found; install libopenblas0")
	}
	return l
}

// withBLAS uses the given BLAS until the test ends.
func withBLAS(t testing.TB, l *Library) {
	Use(l)
	t.Cleanup(func() { Use(nil) })
}

// onEach runs f with gonum's BLAS and, if it is installed, with OpenBLAS.
func onEach(t *testing.T, f func(t *testing.T)) {
	t.Run("gonum", func(t *testing.T) { withBLAS(t, nil); f(t) })
	t.Run("openblas", func(t *testing.T) { withBLAS(t, library(t)); f(t) })
}

// withThreads sets the number of threads until the test ends.
func withThreads(t testing.TB, n int) {
	old := Threads()
	SetThreads(n)
	t.Cleanup(func() { SetThreads(old) })
}

// panicOf returns the value with which f panics, or nil if it does not panic.
func panicOf(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}
