package accel

import "testing"

// requireOpenBLAS returns OpenBLAS, or skips the test if it is not installed.
func requireOpenBLAS(t testing.TB) *Library {
	t.Helper()
	lib, err := OpenBLAS()
	if err != nil {
		t.Skipf("%v; install libopenblas0", err)
	}
	return lib
}

// useBLAS uses lib, or gonum's BLAS if lib is nil, until the test ends, and then gonum's.
func useBLAS(t testing.TB, lib *Library) {
	UseLibrary(lib)
	t.Cleanup(func() { UseLibrary(nil) })
}

// onEachBLAS runs f with gonum's BLAS and, if it is installed, with OpenBLAS.
func onEachBLAS(t *testing.T, f func(t *testing.T)) {
	t.Run("gonum", func(t *testing.T) { useBLAS(t, nil); f(t) })
	t.Run("openblas", func(t *testing.T) { useBLAS(t, requireOpenBLAS(t)); f(t) })
}

// useThreads sets the number of threads until the test ends.
func useThreads(t testing.TB, threads int) {
	oldThreads := Threads()
	SetThreads(threads)
	t.Cleanup(func() { SetThreads(oldThreads) })
}

// panicOf returns the value with which f panics, or nil if it does not panic.
func panicOf(f func()) (panicValue any) {
	defer func() { panicValue = recover() }()
	f()
	return nil
}
