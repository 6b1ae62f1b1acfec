//go:build openblas

package accel

// With the build tag openblas a process starts on OpenBLAS where there is one, as a main
// program would choose it; so the tests of every package, which have no main, run on it too.
// It comes after the init of pool.go, which counts the threads.
func init() {
	if lib, err := OpenBLAS(); err == nil {
		Use(lib)
	}
}
