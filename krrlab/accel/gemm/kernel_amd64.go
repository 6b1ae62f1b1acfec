package gemm

import "golang.org/x/sys/cpu"

// byPath are the micro-kernels by simd.Path, none for Portable.
var byPath = []*kernels{nil, &avx2, &avx512}

var (
	avx2 = kernels{
		kernel[float32]{6, 16, sgemm6x16, spack4, spack2, scopy16},
		kernel[float64]{6, 8, dgemm6x8, dpack4, dpack2, dcopy8},
		byteKernel{6, 16, true, igemm6x16},
	}
	avx512 = kernels{
		kernel[float32]{14, 32, sgemm14x32, spack4, spack2, scopy32},
		kernel[float64]{14, 16, dgemm14x16, dpack4, dpack2, dcopy16},
		avx2.b,
	}
)

func init() {
	if cpu.X86.HasAVX512VNNI {
		avx512.b = byteKernel{14, 32, false, igemm14x32}
	}
}
