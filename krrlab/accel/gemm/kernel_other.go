//go:build !amd64

package gemm

// byPath would be the micro-kernels by simd.Path: there are none.
var byPath []*kernels
