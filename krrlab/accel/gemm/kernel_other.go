//go:build !amd64

package gemm

// This processor has no micro-kernels, neither for a simd.Path nor for bytes.
var (
	byPath      []*kernels
	byteKernels []byteKernel
)
