package gemm

import "golang.org/x/sys/cpu"

//go:generate sh -c "cd _asm && go run ."

// candidates are the paths that the processor has the instructions for, by Path.
func candidates() [numPaths]*kernels {
	paths := [numPaths]*kernels{Portable: &portable}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		paths[AVX2] = &kernels{
			kernel[float32]{6, 16, sgemm6x16, spack4, spack2, scopy16},
			kernel[float64]{6, 8, dgemm6x8, dpack4, dpack2, dcopy8},
			byteKernel{6, 16, true, igemm6x16},
		}
	}
	if cpu.X86.HasAVX512F {
		paths[AVX512] = &kernels{
			kernel[float32]{14, 32, sgemm14x32, spack4, spack2, scopy32},
			kernel[float64]{14, 16, dgemm14x16, dpack4, dpack2, dcopy16},
			portable.b,
		}
		switch {
		case cpu.X86.HasAVX512VNNI:
			paths[AVX512].b = byteKernel{14, 32, false, igemm14x32}
		case paths[AVX2] != nil:
			paths[AVX512].b = paths[AVX2].b
		}
	}
	return paths
}
