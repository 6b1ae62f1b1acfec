package accel

import "testing"

// requireOpenBLAS returns OpenBLAS, or skips the test if it is not installed.
func requireOpenBLAS(t testing.TB) *Library {
	t.Helper()
	l, err := OpenBLAS()
	if err != nil {
		t.Skipf("%v; install libopenblas0", err)
	}
	return l
}

// useBLAS uses l, or gonum's BLAS if l is nil, until the test ends, and then gonum's.
func useBLAS(t testing.TB, l *Library) {
	UseLibrary(l)
	t.Cleanup(func() { UseLibrary(nil) })
}

// onEachBLAS runs f with gonum's BLAS and, if it is installed, with OpenBLAS.
func onEachBLAS(t *testing.T, f func(t *testing.T)) {
	t.Run("gonum", func(t *testing.T) { useBLAS(t, nil); f(t) })
	t.Run("openblas", func(t *testing.T) { useBLAS(t, requireOpenBLAS(t)); f(t) })
}

// useThreads sets the number of threads until the test ends.
func useThreads(t testing.TB, n int) {
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
