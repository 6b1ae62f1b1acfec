//go:build !nodl && (linux || darwin) && !android && (amd64 || arm64)

package dl

import "github.com/ebitengine/purego"

// Able reports whether this program can load shared libraries.
const Able = true

// Anywhere stands for all libraries that are loaded, the C library among them.
const Anywhere = purego.RTLD_DEFAULT

// Open loads the shared library of that name, its symbols for it alone, or global, for the libraries that it loads.
func Open(name string, global bool) (uintptr, error) {
	if global {
		return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	}
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// Sym returns the address of a symbol, 0 if the library has none of that name.
func Sym(lib uintptr, name string) uintptr {
	p, err := purego.Dlsym(lib, name)
	if err != nil {
		return 0
	}
	return p
}

// String calls fn, a C function const char *fn(void), and copies its string.
func String(fn uintptr) string {
	var f func() string
	purego.RegisterFunc(&f, fn)
	return f()
}

// Call calls the C function at fn. Its arguments are addresses or integers, never floating-point values. The
// caller keeps what lies at the addresses alive and in place.
func Call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}
