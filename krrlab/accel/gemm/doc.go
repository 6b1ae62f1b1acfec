// Package gemm multiplies matrices without a library: C = α·op(A)·op(B) + β·C in
// float32 and float64, with the semantics of the BLAS. It is what a machine without
// OpenBLAS computes with, and one with AVX-512 that OpenBLAS does not know for large
// products: package accel registers these products and triangular solves, checks
// their arguments and adds threads.
// It is about as fast as OpenBLAS, as measured with AVX2. There are kernels for AVX2 and
// AVX-512 alone: elsewhere accel uses gonum's code.
//
// # Method
//
// Goto and van de Geijn's, in the form of BLIS. The product is cut into blocks of k
// (at most 256 deep), of n and of m; blocks of B and A are copied ("packed") into
// panels in the order in which they are read, sized for the third and the second
// cache, and a micro-kernel multiplies one panel of A with one of B, both in the first
// cache, into a tile of C held in registers:
//
//	path       processor          tile, float32   float64   bytes
//	avx2       AVX2 and FMA       6×16            6×8       6×16
//	avx512     AVX-512F           14×32           14×16     32×32 with AMX, 14×32 with VNNI, else as avx2
//
// Tiles at the border of C are computed whole, beside C, by the same kernel.
//
// The path is that of package simd. All assembly is written by one generator, _asm, for AVX2 and AVX-512 alike.
//
// # Bytes
//
// Bytes multiplies unsigned bytes exactly, with sums in int32: by TDPBUUD where the processor has AMX and Linux lets
// the process use it, 16·16·64 products an instruction; by VPDPBUSD with AVX-512 VNNI, four an instruction and lane, 128
// subtracted from one factor as it wants that signed; by VPMADDWD with AVX2, two.
//
// # Rounding
//
// An element of C is a function of its row of op(A), its column of op(B), α, β and the
// element alone. Sums are formed in the same order wherever the element lies, so the
// result has the same bits however a caller cuts C into pieces, for threads or tiles,
// and however operands are stored. With d = min(k, 256) and u = 2⁻²⁴ (2⁻⁵³ in float64)
//
//	|Ĉ − C| ≤ (d + ⌈k/d⌉ + 1)·u·(|α||A||B| + |β||C|) ≤ (k + 2)·u·(…),
//
// to first order in u and barring overflow and underflow; |A||B| is the product of the
// absolute values. Subnormal numbers are kept. The paths have the same order of operations.
//
// Unlike gonum's, products with zero are not skipped: 0·NaN is NaN. As in gonum, C is not read if β = 0.
//
// # References
//
// K. Goto, R. A. van de Geijn, Anatomy of high-performance matrix multiplication, ACM
// TOMS 34 (2008), doi:10.1145/1356052.1356053. F. G. Van Zee, R. A. van de Geijn, BLIS:
// a framework for rapidly instantiating BLAS functionality, ACM TOMS 41 (2015),
// doi:10.1145/2764454. N. J. Higham, Accuracy and Stability of Numerical Algorithms,
// 2nd ed. (2002), ch. 3, for the bound.
package gemm
