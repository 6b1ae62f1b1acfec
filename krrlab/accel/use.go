package accel

import (
	"fmt"
	"math"
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

var nan = math.NaN()

// choice is a BLAS chosen for the process: a library, or nil for Go's own.
type choice struct{ lib *Library }

var (
	chosen   atomic.Pointer[choice] // nil before the first use
	choosing sync.Mutex
)

// init puts this package below blas64, blas32 and lapack64, unless another package has put itself there.
func init() {
	if _, ok := blas64.Implementation().(gonum.Implementation); ok {
		blas64.Use(float64s{lib: inUse})
	}
	if _, ok := blas32.Implementation().(gonum.Implementation); ok {
		blas32.Use(float32s{lib: inUse})
	}
	lapack64.Use(lapacks{lib: inUse})
}

// Use makes gonum's blas64, blas32 and lapack64, and this package, run on l, and
// gives l's threads to this package (see SetThreads). Use(nil) takes what needs
// no library: gonum's own code, with products and triangular solves from package gemm.
// It is a choice for the whole process, made by a main program before it computes. A process that
// does not call Use chooses at its first product or factorization; see the package doc.
func Use(l *Library) {
	choosing.Lock()
	defer choosing.Unlock()
	blas64.Use(float64s{lib: inUse})
	blas32.Use(float32s{lib: inUse})
	lapack64.Use(lapacks{lib: inUse})
	use(l)
}

// use is Use, for one that holds choosing.
func use(l *Library) {
	blasThreads.use(func(n int) {
		if l != nil {
			l.threads(n)
		}
		ownThreads.Store(int32(n))
	})
	chosen.Store(&choice{l})
	if garbageBound.Load() > 0 {
		BoundGarbage() // the library has had its share
	}
}

// inUse returns the library in use, nil if there is none. The first call chooses, unless Use did.
func inUse() *Library {
	if c := chosen.Load(); c != nil {
		return c.lib
	}
	choosing.Lock()
	defer choosing.Unlock()
	if c := chosen.Load(); c != nil {
		return c.lib
	}
	var lib *Library
	path := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		path = info.Path
	}
	if wanted(os.Getenv(EnvBLAS), path) {
		lib, _ = OpenBLAS() // an error means Go's own; InUse says which it is
	}
	use(lib)
	return lib
}

// EnvBLAS is the environment variable that chooses the BLAS of a process whose main does not call
// Use: auto or nothing for OpenBLAS if it is found, go for Go's own. In the tests of this
// module, whose numbers are recorded, nothing means go; with openblas they run on OpenBLAS.
const EnvBLAS = "KRRLAB_BLAS"

// wanted reports whether a process looks for OpenBLAS, by the value of EnvBLAS and the path that
// its program was built from.
func wanted(value, path string) bool {
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

// InUse returns the BLAS and LAPACK that are in use. Without a library its Name is
// "gonum".
func InUse() BLAS {
	if l := inUse(); l != nil {
		return l.info
	}
	return BLAS{Name: "gonum"}
}
