//go:build nodl || !((linux || darwin) && !android && (amd64 || arm64))

package dl

import (
	"errors"
	"runtime"
)

// Able reports whether this program can load shared libraries, Anywhere stands for all that are loaded.
const (
	Able     = false
	Anywhere = 0
)

// Open fails.
func Open(string, bool) (uintptr, error) {
	return 0, errors.New("shared libraries cannot be loaded on " + runtime.GOOS + "/" + runtime.GOARCH)
}

// Sym returns 0: there is no symbol.
func Sym(uintptr, string) uintptr { return 0 }

// String returns nothing.
func String(uintptr) string { return "" }

// Call panics.
func Call(uintptr, ...uintptr) uintptr { panic("dl: no shared libraries on this system") }
