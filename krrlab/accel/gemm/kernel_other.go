//go:build !amd64

package gemm

// byPath are the micro-kernels by simd.Path.
var byPath = []*kernels{&portable}
