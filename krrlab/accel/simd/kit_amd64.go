package simd

import "golang.org/x/sys/cpu"

//go:generate sh -c "cd ../_asm && go run ."

// candidates are the paths that the processor has the instructions for, by Path.
func candidates() (paths [numPaths]*kit) {
	paths[Portable] = &kit{}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		paths[AVX2] = kitsOf[AVX2]
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL {
			paths[AVX512] = kitsOf[AVX512]
		}
	}
	return paths
}
