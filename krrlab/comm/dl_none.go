//go:build nodl || !((linux || darwin) && !android && (amd64 || arm64))

package comm

import (
	"errors"
	"runtime"
)

const anywhere = 0

func dlopen(string) (uintptr, error) {
	return 0, errors.New("shared libraries cannot be loaded on " + runtime.GOOS + "/" + runtime.GOARCH)
}

func dlsym(uintptr, string) uintptr { return 0 }

func invoke(uintptr, ...uintptr) int32 { panic("comm: no shared libraries on this system") }
