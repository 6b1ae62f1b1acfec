package simd

import "golang.org/x/sys/cpu"

//go:generate go -C ../_asm run . -pkg simd -out ../simd/simd_amd64.s -stubs ../simd/stub_amd64.go
//go:generate go -C ../_asm run . -pkg gemm -out ../gemm/gemm_amd64.s -stubs ../gemm/stub_amd64.go

// supportedRoutines returns the routines of each Path; nil for a path whose instructions the processor lacks.
func supportedRoutines() (paths [numPaths]*routines) {
	paths[Portable] = &routines{}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		paths[AVX2] = routinesOf[AVX2]
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL {
			paths[AVX512] = routinesOf[AVX512]
		}
	}
	return paths
}
