//go:build !nodl && (linux || darwin) && !android && (amd64 || arm64)

package dl

import "github.com/ebitengine/purego"

// Available reports whether this program can load shared libraries.
const Available = true

// AllLibraries is a handle for all loaded libraries, including the C library. Use it with Sym.
const AllLibraries = purego.RTLD_DEFAULT

// Open loads the shared library with the given name. If global is true, its symbols are visible to libraries that are
// loaded later; otherwise only Sym finds them.
func Open(name string, global bool) (uintptr, error) {
	if global {
		return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	}
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// Sym returns the address of a symbol, or 0 if the library does not have it.
func Sym(library uintptr, name string) uintptr {
	address, err := purego.Dlsym(library, name)
	if err != nil {
		return 0
	}
	return address
}

// String calls fn, a C function with signature const char *fn(void), and returns a copy of its string.
func String(fn uintptr) string {
	var f func() string
	purego.RegisterFunc(&f, fn)
	return f()
}

// Call calls the C function at fn. The arguments are addresses or integers; floating-point arguments are not
// supported. The caller must keep the memory at the addresses alive and must not move it.
func Call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}
