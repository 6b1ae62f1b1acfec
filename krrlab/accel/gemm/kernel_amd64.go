package gemm

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// byPath holds the micro-kernels of each simd.Path. The entry of Portable is nil.
var byPath = []*kernels{nil, &avx2, &avx512}

// byteKernels holds the micro-kernels for bytes that this processor can run, from the slowest to the fastest: AVX2,
// VNNI, AMX.
var byteKernels = []byteKernel{{mr: 6, nr: 16, wide: true, depth: 1, mul: igemm6x16}}

var (
	avx2 = kernels{
		kernel[float32]{6, 16, sgemm6x16, spack4, spack2, scopy16},
		kernel[float64]{6, 8, dgemm6x8, dpack4, dpack2, dcopy8},
		byteKernels[0],
	}
	avx512 = kernels{
		kernel[float32]{14, 32, sgemm14x32, spack4, spack2, scopy32},
		kernel[float64]{14, 16, dgemm14x16, dpack4, dpack2, dcopy16},
		avx2.bytes,
	}
)

func init() {
	if cpu.X86.HasAVX512VNNI {
		byteKernels = append(byteKernels, byteKernel{mr: 14, nr: 32, shifted: true, depth: 1, mul: igemm14x32})
	}
	if cpu.X86.HasAMXInt8 && runtime.GOOS == "linux" && permit() == 0 {
		byteKernels = append(byteKernels, byteKernel{mr: 32, nr: 32, depth: 16, mul: igemm32x32})
	}
	avx512.bytes = byteKernels[len(byteKernels)-1]
}
