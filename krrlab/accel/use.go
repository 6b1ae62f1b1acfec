package accel

import (
	"math"
	"sync/atomic"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
)

var nan = math.NaN()

// The least work, m·n·k multiplications, for which a call into the library is
// worth its while; measured with BenchmarkCrossover.
const (
	gemmWork = 1 << 10
	syrkWork = 4 << 10
	trxmWork = 1 << 10
	gemvWork = 64 << 10 // matrices that leave the cache: else threads cost more than they bring
)

// large reports whether m·n·k is at least work. Negative dimensions are not large.
func large(m, n, k, work int) bool {
	return m > 0 && n > 0 && k > 0 && float64(m)*float64(n)*float64(k) >= float64(work)
}

// inUse is the library that Use was given, nil for none.
var inUse atomic.Pointer[Library]

// Use makes gonum's blas64, blas32 and lapack64, and this package, run on l, and
// gives l's threads to this package (see SetThreads). Use(nil) goes back to what needs
// no library: gonum's own code, with products and triangular solves from package gemm.
// It is a choice for the whole process, made by a main program before it computes; it
// must not run beside other calls of a BLAS.
func Use(l *Library) {
	inUse.Store(l)
	if l == nil {
		blas64.Use(own64{})
		blas32.Use(own32{})
		lapack64.Use(lapackgonum.Implementation{})
		blasThreads.use(func(n int) { ownThreads.Store(int32(n)) })
		return
	}
	blas64.Use(openblas64{lib: l})
	blas32.Use(openblas32{lib: l})
	lapack64.Use(openlapack64{lib: l})
	blasThreads.use(func(n int) {
		l.threads(n)
		ownThreads.Store(int32(n))
	})
}

// InUse returns the BLAS and LAPACK that are in use. Without a library its Name is
// "gonum".
func InUse() BLAS {
	if l := inUse.Load(); l != nil {
		return l.info
	}
	return BLAS{Name: "gonum"}
}
