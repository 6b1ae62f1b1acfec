// Package accel owns the machine: its threads, the BLAS and LAPACK found at run
// time, the elementwise functions that a kernel matrix spends its time in, and
// the facts (cores, memory, bandwidth) a plan is made from. It is the only
// package that knows of assembly, shared libraries or the operating system, and
// every one of its parts has a portable Go form: a machine without OpenBLAS runs
// the same program, slower.
//
// # Threads
//
// ForEach is the project's one parallel loop and SetThreads the one place where
// a number of threads is chosen. The BLAS has its own threads; so that Go
// workers and BLAS threads never oversubscribe the cores, a BLAS call runs on
// all Threads() outside ForEach and on one inside it. Hence two ways to write a
// dense computation:
//
//   - one large product: call blas64.Gemm outside ForEach;
//   - many tiles, each with Go work on it (a kernel function, say): call
//     blas32.Gemm on each tile inside ForEach.
//
// The threads of OpenBLAS wait for more work in a loop after a product on several
// threads, by its own default for about 30 ms, in which a ForEach takes up to
// twice as long. They are told to wait half a millisecond, unless
// OPENBLAS_THREAD_TIMEOUT in the environment says otherwise.
//
// # BLAS and LAPACK
//
// All dense linear algebra of the project is written against gonum's blas64,
// blas32 and lapack64. The first product or factorization of a process that imports this
// package chooses what they run on: OpenBLAS if it is found, else Go. Nothing is loaded before,
// and InUse says which it is. A main program that wants to choose calls Use before it computes,
//
//	lib, err := accel.OpenBLAS() // the error says which Debian package to install
//	accel.Use(lib)               // nil is Go's own
//
// and KRRLAB_BLAS=go in the environment (EnvBLAS) does it without a line of code.
// Go's own are gonum's, save for products and triangular solves (Gemm, Syrk, Trsm, Trmm in
// float32 and float64), which are package gemm's, cut into pieces for the pool of workers, where
// gemm has kernels for the processor. On a core with AVX2 products are about as fast as OpenBLAS's,
// and they give the same bits for any number of threads. OpenBLAS
// is loaded by dlopen through purego, so the program builds with or without cgo
// and starts with or without the library. Semantics stay gonum's: row-major
// storage, panics for bad shapes with gonum's words (they are raised by gonum's
// own checks: only operands known to be good reach C), and beta = 0 overwrites
// even NaN. (gonum v0.17's own Dsyrk and Ssyrk do not when they form Aᵀ·A into a
// lower triangle: clear C first if it may hold NaN.) Problems too small to pay
// for the call into C, about 0.2 µs, and those with alpha = 0 or a dimension of
// 2³¹ or more stay in Go.
//
// The build tag nodl leaves the loading of shared libraries out of the program. The tests of this
// module run on Go's own unless KRRLAB_BLAS=openblas, as in some rows of make test-machines.
//
// Row-major operands are handed over as they lie: a row-major m×n matrix is a
// column-major n×m one, its transpose, so C = A·B becomes Cᵀ = Bᵀ·Aᵀ, a lower
// triangle becomes an upper one and a left side a right side. Nothing is copied.
//
// Dpotrf, Spotrf and Dtrtri factor and invert by tiles on the pool of workers. Unlike
// the library's own threads they give the same bits for any number of them. Use them
// where lapack64.Potrf would be called for a large matrix outside ForEach.
//
// # Machine facts
//
// CPU, MemoryLimit, MemoryAvailable and PeakRSS are read from the operating
// system (cgroup limits included, since batch systems and containers use them);
// ReadRate, GemmRate64 and GemmRate32 are measured.
//
// # References
//
// J. Dongarra et al., A set of level 3 basic linear algebra subprograms, ACM
// TOMS 16 (1990), doi:10.1145/77626.79170.
package accel
