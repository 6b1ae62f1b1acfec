//go:build !nodl && (linux || darwin) && !android && (amd64 || arm64)

package comm

import "github.com/ebitengine/purego"

// dlopen loads the shared library of that name. Its symbols are global, for the plugins
// that MPI libraries load.
func dlopen(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

// anywhere stands for all libraries that are loaded, the C library among them.
const anywhere = purego.RTLD_DEFAULT

// dlsym returns the address of a symbol, 0 if the library has none of that name.
func dlsym(lib uintptr, name string) uintptr {
	p, err := purego.Dlsym(lib, name)
	if err != nil {
		return 0
	}
	return p
}

// invoke calls a C function that returns an int. Its arguments are addresses or integers.
// What an argument written uintptr(unsafe.Pointer(p)) points to is on the heap, where it
// does not move, and stays during the call: a stack moves when it grows, as on the way to
// C. For any other address the caller sees to both.
//
//go:uintptrescapes
func invoke(fn uintptr, args ...uintptr) int32 {
	r, _, _ := purego.SyscallN(fn, args...)
	return int32(r)
}
