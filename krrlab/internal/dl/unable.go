//go:build nodl || !((linux || darwin) && !android && (amd64 || arm64))

package dl

import (
	"errors"
	"runtime"
)

// Available reports whether this program can load shared libraries. AllLibraries is a handle for all loaded libraries.
const (
	Available    = false
	AllLibraries = 0
)

// Open returns an error.
func Open(string, bool) (uintptr, error) {
	return 0, errors.New("shared libraries cannot be loaded on " + runtime.GOOS + "/" + runtime.GOARCH)
}

// Sym returns 0, as for a symbol that does not exist.
func Sym(uintptr, string) uintptr { return 0 }

// String returns an empty string.
func String(uintptr) string { return "" }

// Call panics.
func Call(uintptr, ...uintptr) uintptr { panic("dl: no shared libraries on this system") }
