// Package accel provides the hardware-dependent parts of the project: threads, the
// BLAS and LAPACK found at run time, and facts about the machine (cores, memory,
// bandwidth) from which a plan is made. Its subpackage simd has elementwise functions, and
// gemm has matrix products. No other package contains assembly, or calls shared
// libraries or the operating system. Every part also has a portable form in Go, so a
// machine without OpenBLAS runs the same program, only slower.
//
// # Threads
//
// ForEach is the only parallel loop of the project, and SetThreads the only function
// that sets a number of threads. The BLAS has its own threads. A BLAS call runs on all
// Threads() outside ForEach and on one inside it, so that Go workers and BLAS threads
// never oversubscribe the cores. There are therefore two ways to write a dense
// computation:
//
//   - one large product: call blas64.Gemm outside ForEach;
//   - many tiles, each with Go work on it (a kernel function, say): call
//     blas32.Gemm on each tile inside ForEach.
//
// After a product on several threads, the threads of OpenBLAS wait for more work in a
// loop, by default for about 30 ms. During this time a ForEach takes up to twice as
// long. This package sets the time to half a millisecond, unless the environment sets
// OPENBLAS_THREAD_TIMEOUT.
//
// # BLAS and LAPACK
//
// All dense linear algebra of the project calls gonum's blas64, blas32 and lapack64. In
// a process that imports this package, the first product or factorization chooses their
// implementation: OpenBLAS if it is found, and Go otherwise. No library is loaded before
// that. CurrentBLAS reports the choice. A main program can choose by calling UseLibrary before it
// computes:
//
//	lib, err := accel.OpenBLAS() // the error names the Debian package to install
//	accel.UseLibrary(lib)        // nil selects the implementation in Go
//
// Setting KRRLAB_BLAS=go in the environment (EnvBLAS) selects Go without a change of code.
//
// The implementation in Go is gonum's, except for products and triangular solves (Gemm,
// Syrk, Trsm, Trmm in float32 and float64). If package gemm has kernels for the
// processor, it computes these, in pieces on the pool of workers. On a core with AVX2
// they are about as fast as those of OpenBLAS, and their results have the same bits for
// any number of threads.
//
// OpenBLAS is loaded by dlopen through purego, so the program builds with or without cgo
// and starts with or without the library. The semantics are those of gonum: storage is
// row-major, invalid shapes panic with gonum's messages (gonum's own checks raise them;
// only valid operands are passed to C), and beta = 0 overwrites even NaN. (gonum v0.17's
// Dsyrk and Ssyrk do not overwrite NaN when they form Aᵀ·A in a lower triangle: clear C
// first if it may contain NaN.) A call into C takes about 0.2 µs. Problems that are too
// small for this overhead, and those with alpha = 0 or a dimension of 2³¹ or more, are solved in
// Go.
//
// The build tag nodl excludes the loading of shared libraries from the program. The tests
// of this module use the implementation in Go unless KRRLAB_BLAS=openblas, as in some
// rows of make test-machines.
//
// Row-major operands are passed to the library without copying. A row-major m×n matrix is
// a column-major n×m matrix, its transpose. C = A·B therefore becomes Cᵀ = Bᵀ·Aᵀ, a lower
// triangle becomes an upper one, and the left side becomes the right side.
//
// Dpotrf, Spotrf and Dtrtri factor and invert matrices by tiles on the pool of workers.
// Unlike with the library's own threads, the results have the same bits for any number of
// threads. Call them instead of lapack64.Potrf for large matrices outside ForEach.
//
// # Machine facts
//
// CPU, MemoryLimit, MemoryAvailable and PeakRSS read from the operating system. They
// include cgroup limits, since batch systems and containers use them. ReadRate,
// GemmRate64 and GemmRate32 measure.
//
// # References
//
// J. Dongarra et al., A set of level 3 basic linear algebra subprograms, ACM
// TOMS 16 (1990), doi:10.1145/77626.79170.
package accel
