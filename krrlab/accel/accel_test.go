package accel

import "testing"

// library returns OpenBLAS or skips the test.
func library(t testing.TB) *Library {
	t.Helper()
	l, err := OpenBLAS()
	if err != nil {
		t.Skip("libopenblas.so.0 not found; install libopenblas0")
	}
	return l
}

// withBLAS is Use for the length of a test.
func withBLAS(t testing.TB, l *Library) {
	Use(l)
	t.Cleanup(func() { Use(nil) })
}

// onEach runs f on gonum's BLAS and, if it is there, on OpenBLAS, as Use sets
// them.
func onEach(t *testing.T, f func(t *testing.T)) {
	t.Run("gonum", func(t *testing.T) { withBLAS(t, nil); f(t) })
	t.Run("openblas", func(t *testing.T) { withBLAS(t, library(t)); f(t) })
}

// withThreads sets the number of threads for the length of a test.
func withThreads(t testing.TB, n int) {
	old := Threads()
	SetThreads(n)
	t.Cleanup(func() { SetThreads(old) })
}

// panicOf returns what f panics with, nil if it does not.
func panicOf(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}
