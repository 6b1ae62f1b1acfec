//go:build !nodl && (linux || darwin) && !android && (amd64 || arm64)

package accel

import "github.com/ebitengine/purego"

func dlopen(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// dlsym returns the address of a symbol, 0 if the library has none of that name.
func dlsym(lib uintptr, name string) uintptr {
	p, err := purego.Dlsym(lib, name)
	if err != nil {
		return 0
	}
	return p
}

// cString calls fn, a C function const char *fn(void), and copies its string.
func cString(fn uintptr) string {
	var f func() string
	purego.RegisterFunc(&f, fn)
	return f()
}

// call calls the C function at fn. Its arguments are addresses or integers,
// never floating-point values: every BLAS and LAPACK routine is called through
// its Fortran interface, where all operands are addresses. The caller keeps what
// lies at the addresses alive and in place.
func call(fn uintptr, args []uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}
