// Package gemm multiplies matrices without a library: C = α·op(A)·op(B) + β·C in
// float32 and float64, with the semantics of the BLAS. Package accel uses it on machines
// without OpenBLAS, and for large products on machines whose AVX-512 the installed OpenBLAS
// does not support. Package accel registers these products and triangular solves with
// gonum, checks their arguments and adds threads.
//
// Measured with AVX2, the package is about as fast as OpenBLAS. It has kernels for AVX2 and
// AVX-512 only; on other processors accel uses gonum's code.
//
// # Method
//
// The method is that of Goto and van de Geijn, in the form of BLIS. The product is cut into blocks of k
// (at most 256 deep), of n and of m; blocks of B and A are copied ("packed") into
// panels in the order in which they are read, sized for the third and the second
// cache, and a micro-kernel multiplies one panel of A with one of B, both in the first
// cache, into a tile of C held in registers:
//
//	path       processor          tile, float32   float64   bytes
//	avx2       AVX2 and FMA       6×16            6×8       6×16
//	avx512     AVX-512F           14×32           14×16     32×32 with AMX, 14×32 with VNNI, else as avx2
//
// A tile that crosses the border of C is computed completely in a buffer, by the same kernel, and the part inside C is
// copied.
//
// Package simd chooses the path. One generator, _asm, writes all assembly, for AVX2 and AVX-512 alike.
//
// # Bytes
//
// MultiplyBytes multiplies unsigned bytes exactly, with sums in int32. It uses one of three instructions:
//
//   - TDPBUUD, if the processor has AMX and Linux lets the process use it: 16·16·64 products per instruction;
//   - VPDPBUSD, with AVX-512 VNNI: four products per instruction and lane. Its second factor is signed, so 128 is
//     subtracted from the bytes of that factor;
//   - VPMADDWD, with AVX2: two products per instruction and lane.
//
// # Rounding
//
// The computed element of C depends only on its row of op(A), its column of op(B), α, β and its
// old value. Its sum is formed in the same order at every position in C. The result therefore has
// the same bits however a caller cuts C into pieces, for threads or tiles, and however the
// operands are stored. With d = min(k, 256) and u = 2⁻²⁴ (2⁻⁵³ in float64)
//
//	|Ĉ − C| ≤ (d + ⌈k/d⌉ + 1)·u·(|α||A||B| + |β||C|) ≤ (k + 2)·u·(…),
//
// to first order in u and barring overflow and underflow; |A||B| is the product of the
// absolute values. Subnormal numbers are not flushed to zero. All paths have the same order of operations.
//
// Unlike in gonum, products with zero are not skipped: 0·NaN is NaN. As in gonum, C is not read if β = 0.
//
// # References
//
// K. Goto, R. A. van de Geijn, Anatomy of high-performance matrix multiplication, ACM
// TOMS 34 (2008), doi:10.1145/1356052.1356053. F. G. Van Zee, R. A. van de Geijn, BLIS:
// a framework for rapidly instantiating BLAS functionality, ACM TOMS 41 (2015),
// doi:10.1145/2764454. N. J. Higham, Accuracy and Stability of Numerical Algorithms,
// 2nd ed. (2002), ch. 3, for the bound.
package gemm
