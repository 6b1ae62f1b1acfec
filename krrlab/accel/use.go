package accel

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// choice is the BLAS chosen for the process. Its lib is nil for the implementation in Go.
type choice struct{ lib *Library }

var (
	currentChoice atomic.Pointer[choice] // nil until the first use of the BLAS
	choiceMutex   sync.Mutex
)

// init registers this package with blas64, blas32 and lapack64, unless another package has registered its own BLAS.
func init() {
	if _, ok := blas64.Implementation().(gonum.Implementation); ok {
		blas64.Use(float64s{})
	}
	if _, ok := blas32.Implementation().(gonum.Implementation); ok {
		blas32.Use(float32s{})
	}
	lapack64.Use(libraryLAPACK{})
}

// UseLibrary selects the library lib for this package and for gonum's blas64, blas32 and lapack64. From then on this
// package controls the number of threads of lib (see SetThreads). UseLibrary(nil) selects the implementation that needs
// no library: gonum's code, with products and triangular solves from package gemm.
//
// The choice applies to the whole process. A main program should call UseLibrary before it computes. Without a call of
// UseLibrary, the process chooses at its first product or factorization; see the package comment. UseLibrary returns
// the library that was in use, for callers that restore it; nil if there was none or no choice yet.
func UseLibrary(lib *Library) (previous *Library) {
	choiceMutex.Lock()
	defer choiceMutex.Unlock()
	blas64.Use(float64s{})
	blas32.Use(float32s{})
	lapack64.Use(libraryLAPACK{})
	if chosen := currentChoice.Load(); chosen != nil {
		previous = chosen.lib
	}
	useLibraryLocked(lib)
	return previous
}

// useLibraryLocked is UseLibrary for callers that hold choiceMutex. It does not register this package with gonum.
func useLibraryLocked(lib *Library) {
	blasThreads.use(func(n int) {
		if lib != nil {
			lib.threads(n)
		}
		goThreads.Store(int32(n))
	})
	currentChoice.Store(&choice{lib})
	if ownMemoryLimit.Load() > 0 {
		ConfigureGC() // the library has allocated its memory, which reduces the limit
	}
}

// currentLibrary returns the library in use, or nil if there is none. The first call chooses one, unless UseLibrary has
// been called.
func currentLibrary() *Library {
	if chosen := currentChoice.Load(); chosen != nil {
		return chosen.lib
	}
	choiceMutex.Lock()
	defer choiceMutex.Unlock()
	if chosen := currentChoice.Load(); chosen != nil {
		return chosen.lib
	}
	var lib *Library
	mainPackage := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		mainPackage = info.Path
	}
	if wantsOpenBLAS(os.Getenv(EnvBLAS), mainPackage) {
		lib, _ = OpenBLAS() // after an error lib is nil, which selects Go; see CurrentBLAS
	}
	useLibraryLocked(lib)
	return lib
}

// EnvBLAS is the environment variable that selects the BLAS of a process that does not call UseLibrary. Its value
// "auto", "openblas" or an empty one selects OpenBLAS if it is found, and "go" selects the implementation in Go. In the
// tests of this module, whose results are recorded, an empty value means "go".
const EnvBLAS = "KRRLAB_BLAS"

// wantsOpenBLAS reports whether a process looks for OpenBLAS, given the value of EnvBLAS and the path of its main
// package. It panics if the value is unknown.
func wantsOpenBLAS(value, path string) bool {
	switch value {
	case "go":
		return false
	case "openblas", "auto":
		return true
	case "":
		return !strings.HasPrefix(path, "github.com/krrlab/lab/") || !strings.HasSuffix(path, ".test")
	}
	panic(fmt.Sprintf("accel: %s=%q: want auto, openblas or go", EnvBLAS, value))
}

// CurrentBLAS describes the BLAS and LAPACK in use. Without a library, its Name is "gonum".
func CurrentBLAS() BLAS {
	if lib := currentLibrary(); lib != nil {
		return lib.info
	}
	return BLAS{Name: "gonum"}
}
