package gemm

import "unsafe"

// Real is a number format that there are kernels for.
type Real interface{ float32 | float64 }

// kernel is a micro-kernel. mul computes one tile of C, mr×nr, from a panel a of
// packed A and a panel b of packed B,
//
//	S_ij = Σ_{p<k} a[p·mr+i]·b[p·nr+j],   p ascending from S_ij = 0,
//	C_ij = α·S_ij + C_ij  if add,  C_ij = α·S_ij  if not,
//
// where C_ij is c[i·ldc+j]. It reads C only if add, and k may be 0. A fused kernel
// rounds once for each p and once for α·S_ij + C_ij; one that is not rounds products
// and sums.
//
// pack4 and pack2, if not nil, transpose as it packs, for 4 and 2 vectors:
// dst[p·w+i] = src[i·ld+p] for p < n. pack, if not nil, copies rows of nr elements:
// dst[p·nr+i] = src[p·ld+i] for p < n.
type kernel[T Real] struct {
	mr, nr       int
	mul          func(k int, a, b, c *T, ldc int, alpha T, add bool)
	pack4, pack2 func(n int, src *T, ld int, dst *T, w int)
	pack         func(n int, src *T, ld int, dst *T)
}

// kernels are the micro-kernels of one path.
type kernels struct {
	s kernel[float32]
	d kernel[float64]
	b byteKernel
}

var portable = kernels{
	kernel[float32]{mr: 4, nr: 4, mul: mul4x4[float32]},
	kernel[float64]{mr: 4, nr: 4, mul: mul4x4[float64]},
	byteKernel{4, 4, true, imul4x4},
}

// mul4x4 is the micro-kernel in Go. Two rows at a time, the sums fit the registers
// of amd64.
func mul4x4[T Real](k int, a, b, c *T, ldc int, alpha T, add bool) {
	as, bs := unsafe.Slice((*[2][2]T)(unsafe.Pointer(a)), k), unsafe.Slice((*[4]T)(unsafe.Pointer(b)), k)
	cs := unsafe.Slice(c, 3*ldc+4)
	for h := range 2 {
		var s00, s01, s02, s03, s10, s11, s12, s13 T
		for p := range as {
			x, y := &as[p][h], &bs[p]
			s00 += x[0] * y[0]
			s01 += x[0] * y[1]
			s02 += x[0] * y[2]
			s03 += x[0] * y[3]
			s10 += x[1] * y[0]
			s11 += x[1] * y[1]
			s12 += x[1] * y[2]
			s13 += x[1] * y[3]
		}
		write4(cs[2*h*ldc:], alpha, [4]T{s00, s01, s02, s03}, add)
		write4(cs[(2*h+1)*ldc:], alpha, [4]T{s10, s11, s12, s13}, add)
	}
}

func write4[T Real](c []T, alpha T, s [4]T, add bool) {
	c = c[:4]
	for j, v := range s {
		if add {
			c[j] += alpha * v
		} else {
			c[j] = alpha * v
		}
	}
}
