//go:build nodl || !((linux || darwin) && !android && (amd64 || arm64))

package accel

import (
	"errors"
	"runtime"
)

func dlopen(string) (uintptr, error) {
	return 0, errors.New("shared libraries cannot be loaded on " + runtime.GOOS + "/" + runtime.GOARCH)
}

func dlsym(uintptr, string) uintptr { return 0 }

func cString(uintptr) string { return "" }

func call(uintptr, []uintptr) uintptr { panic("accel: no shared libraries on this system") }
