//go:build !amd64

package gemm

// candidates are the paths that the processor has the instructions for, by Path.
func candidates() [numPaths]*kernels { return [numPaths]*kernels{Portable: &portable} }
