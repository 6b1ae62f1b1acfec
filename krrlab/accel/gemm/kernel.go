package gemm

// float is a number format for which there are kernels.
type float interface{ float32 | float64 }

// kernel is a micro-kernel. mul computes one tile of C, mr×nr, from a panel a of packed A and a panel b of packed B:
//
//	S_ij = Σ_{p<k} a[p·mr+i]·b[p·nr+j],   p ascending from S_ij = 0,
//	C_ij = α·S_ij + C_ij  if add,  C_ij = α·S_ij  otherwise,
//
// where C_ij is c[i·ldc+j]. mul reads C only if add is set; k may be 0. A kernel with fused multiply-adds rounds once
// for each p and once for α·S_ij + C_ij. A kernel without them rounds every product and every sum.
//
// pack4 and pack2, if not nil, transpose 4 and 2 vectors of n elements while packing: dst[p·w+i] = src[i·ld+p] for p <
// n. pack, if not nil, copies n rows of nr elements: dst[p·nr+i] = src[p·ld+i] for p < n.
type kernel[T float] struct {
	mr, nr       int
	mul          func(k int, a, b, c *T, ldc int, alpha T, add bool)
	pack4, pack2 func(n int, src *T, ld int, dst *T, w int)
	pack         func(n int, src *T, ld int, dst *T)
}

// kernels are the micro-kernels of one path.
type kernels struct {
	f32   kernel[float32]
	f64   kernel[float64]
	bytes byteKernel
}
