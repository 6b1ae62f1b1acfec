// Package simd holds the loops in which the solver spends its time, in assembly for
// x86-64 and in portable Go: products of a tile with a few vectors, e^x and cos x over
// slices, the rows of a Gaussian tile, the Walsh–Hadamard butterfly.
//
// # Products of a tile
//
// A tile T, rows×cols and row-major, is read once for all t right-hand sides:
//
//	Both       u += T·x   and   y += Tᵀ·z   (a tile off the diagonal of K, or one of 16-bit whole numbers)
//	Forward    u += T·x   with T in float32 or float64 and vectors in float64
//	Backward   y += Tᵀ·z  likewise
//
// Vectors lie one after the other: entry j of column c of x is x[c*cols+j]. A pass of the assembly takes one to three
// right-hand sides and two to four rows: the tile's entries are loaded once and each serves both products, sums and
// multipliers stay in registers. A pass one way has registers for up to six right-hand sides. 16-bit numbers, and
// float32 numbers that meet float64 vectors, are converted as they are loaded, by units that the arithmetic leaves
// idle. Blocks of 24 rows are taken through all passes while they are in the second cache, and all passes fetch the
// next block ahead at one pace, so that the tile comes from memory once, beside the arithmetic. One way a block has 512
// columns, and what is fetched are the rows of the next one, so that the tile may be all of a matrix.
//
// Float32 sums are formed in lanes: as many as a register has, at least 8, in assembly and 4 in
// Go. A sum over c columns in l lanes has an error of at most about (c/l+3)·2⁻²⁴ times the sum
// of magnitudes.
//
// # Elementwise functions
//
// Exp32, Cos32 and GaussianRow compute in float64 and round once; Exp64 is right to an ulp of
// float64. The assembly of these and of SquaredDistances and Round does the same operations in the same order as the Go
// code, which says by math.FMA where products and sums are fused, and gives the same bits on every processor.
//
// # Packed rows
//
// Pack keeps of a row the numbers that are not small, as a bit for each number and the values, and sums up what it
// drops; Unpack restores it. A tile of 256×256 is unpacked in the first caches in less time than memory takes to
// deliver it.
//
// # Paths
//
// AVX512, AVX2 (with FMA) and Portable are the paths, of this package and of package gemm. At the
// start the fastest one that the processor has is taken; Use forces another. With AVX512 the
// elementwise functions run the assembly for AVX2. Paths sum in different orders: results of
// products agree to rounding, not to the bit; on one path they are always the same.
//
// The assembly is written by a generator in _asm (github.com/mmcloughlin/avo); the AVX512
// products come from the same lines as the AVX2 ones with wider registers.
package simd
