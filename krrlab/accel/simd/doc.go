// Package simd contains the most expensive loops of the solver, in assembly for x86-64 and
// in portable Go: products of a tile with a few vectors, e^x and cos x over
// slices, the rows of a Gaussian tile, the Walsh–Hadamard butterfly.
//
// # Products of a tile
//
// A tile T, rows×cols and row-major, is read once for all t right-hand sides:
//
//	AddBothProducts      u += T·x and y += Tᵀ·z, for a tile off the diagonal of K or one of 16-bit whole numbers
//	AddProduct           u += T·x, with T in float32 or float64 and vectors in float64
//	AddTransposeProduct  y += Tᵀ·z, with the same types
//
// Vectors are stored one after the other: entry j of column c of x is x[c*cols+j]. A pass of the assembly takes one to
// three right-hand sides and two to four rows: the tile's entries are loaded once and each serves both products, sums
// and multipliers stay in registers. A pass of AddProduct or AddTransposeProduct has registers for up to six right-hand
// sides. 16-bit numbers, and float32 numbers that are multiplied by float64 vectors, are converted when they are
// loaded, in execution units that the arithmetic does not use. Each block of 24 rows goes through all passes while it
// is in the second cache. Meanwhile the passes prefetch the next block at a constant rate, so that the tile is read
// from memory once, at the same time as the arithmetic. In AddProduct and AddTransposeProduct a block has at most 512
// columns, and the passes prefetch the rows of the next block, so that the tile may be an entire matrix.
//
// Float32 sums are formed in lanes: in assembly as many as a register has, at least 8, and in Go 4.
// A sum over c columns in l lanes has an error of at most about (c/l+3)·2⁻²⁴ times the sum
// of magnitudes.
//
// # Elementwise functions
//
// Exp32, Cos32 and GaussianRow compute in float64 and round once; Exp64 is right to an ulp of float64. The assembly of
// these and of SquaredDistances and RoundToFloat32 does the same operations in the same order as the Go code, in
// which math.FMA marks the fused products and sums. The results have the same bits on every processor.
//
// # Packed rows
//
// PackRow stores the numbers of a row that are not small, as one bit for each number and the values, and sums up the
// magnitudes of the dropped numbers. UnpackRow restores the row. A tile of 256×256 is unpacked in the first caches in
// less time than memory takes to deliver it.
//
// # Paths
//
// The paths of this package and of package gemm are AVX512, AVX2 (with FMA) and Portable.
// Initially the fastest path that the processor supports is used; UsePath selects another. With AVX512 the
// elementwise functions run the assembly for AVX2. Paths sum in different orders: results of
// products agree to rounding, not to the bit; on one path they are always the same.
//
// The assembly is written by a generator in _asm (github.com/mmcloughlin/avo); the AVX512
// products come from the same lines as the AVX2 ones with wider registers.
package simd
