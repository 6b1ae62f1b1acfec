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
		}
	}
	if cpu.X86.HasAVX512F {
		paths[AVX512] = &kernels{
			kernel[float32]{14, 32, sgemm14x32, spack4, spack2, scopy32},
			kernel[float64]{14, 16, dgemm14x16, dpack4, dpack2, dcopy16},
		}
	}
	return paths
}
