//go:build !amd64

package gemm

// The micro-kernels by simd.Path, and those for bytes: there are none.
var (
	byPath      []*kernels
	byteKernels []byteKernel
)
