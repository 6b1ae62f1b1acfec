package simd

import "golang.org/x/sys/cpu"

//go:generate sh -c "cd _asm && go run ."

// candidates are the paths that the processor has the instructions for, by Path.
func candidates() (paths [numPaths]*kit) {
	paths[Portable] = &kit{}
	avx2 := cpu.X86.HasAVX2 && cpu.X86.HasFMA
	if avx2 {
		paths[AVX2] = &kit{
			both32: &passes[float32, float32]{true, true, 16, 3, sides(4, 3, 2), sides(sBoth4x1AVX2, sBoth3x2AVX2, sBoth2x3AVX2), sides(sBothStream4x1AVX2, sBothStream3x2AVX2, sBothStream2x3AVX2), sides(sBoth1x1AVX2, sBoth1x2AVX2, sBoth1x3AVX2), sAddAVX2},
			both16: &passes[uint16, float32]{true, true, 16, 3, sides(4, 3, 2), sides(hBoth4x1AVX2, hBoth3x2AVX2, hBoth2x3AVX2), sides(hBothStream4x1AVX2, hBothStream3x2AVX2, hBothStream2x3AVX2), sides(hBoth1x1AVX2, hBoth1x2AVX2, hBoth1x3AVX2), sAddAVX2},
			both64: &passes[float64, float64]{true, true, 8, 3, sides(4, 3, 2), sides(dBoth4x1AVX2, dBoth3x2AVX2, dBoth2x3AVX2), sides(dBothStream4x1AVX2, dBothStream3x2AVX2, dBothStream2x3AVX2), sides(dBoth1x1AVX2, dBoth1x2AVX2, dBoth1x3AVX2), dAddAVX2},
			forward: &passes[float32, float64]{true, false, 8, 6, sides(4, 4, 4, 3, 2, 2),
				sides(wForward4x1AVX2, wForward4x2AVX2, wForward4x3AVX2, wForward3x4AVX2, wForward2x5AVX2, wForward2x6AVX2),
				sides(wForwardStream4x1AVX2, wForwardStream4x2AVX2, wForwardStream4x3AVX2, wForwardStream3x4AVX2, wForwardStream2x5AVX2, wForwardStream2x6AVX2),
				sides(wForward1x1AVX2, wForward1x2AVX2, wForward1x3AVX2, wForward1x4AVX2, wForward1x5AVX2, wForward1x6AVX2), nil},
			forward64: &passes[float64, float64]{true, false, 8, 6, sides(4, 4, 4, 3, 2, 2),
				sides(dForward4x1AVX2, dForward4x2AVX2, dForward4x3AVX2, dForward3x4AVX2, dForward2x5AVX2, dForward2x6AVX2),
				sides(dForwardStream4x1AVX2, dForwardStream4x2AVX2, dForwardStream4x3AVX2, dForwardStream3x4AVX2, dForwardStream2x5AVX2, dForwardStream2x6AVX2),
				sides(dForward1x1AVX2, dForward1x2AVX2, dForward1x3AVX2, dForward1x4AVX2, dForward1x5AVX2, dForward1x6AVX2), nil},
			backward: &passes[float32, float64]{false, true, 8, 4, sides(4, 4, 4, 3),
				sides(wBackward4x1AVX2, wBackward4x2AVX2, wBackward4x3AVX2, wBackward3x4AVX2),
				sides(wBackwardStream4x1AVX2, wBackwardStream4x2AVX2, wBackwardStream4x3AVX2, wBackwardStream3x4AVX2),
				sides(wBackward1x1AVX2, wBackward1x2AVX2, wBackward1x3AVX2, wBackward1x4AVX2), nil},
			backward64: &passes[float64, float64]{false, true, 8, 4, sides(4, 4, 4, 3),
				sides(dBackward4x1AVX2, dBackward4x2AVX2, dBackward4x3AVX2, dBackward3x4AVX2),
				sides(dBackwardStream4x1AVX2, dBackwardStream4x2AVX2, dBackwardStream4x3AVX2, dBackwardStream3x4AVX2),
				sides(dBackward1x1AVX2, dBackward1x2AVX2, dBackward1x3AVX2, dBackward1x4AVX2), nil},
			vectors: true, pack: sPackAVX2, unpack: sUnpackAVX2,
			squares64: dSquaresAVX2, absolutes64: dAbsolutesAVX2, absolutes32: sAbsolutesAVX2,
		}
	}
	if avx2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL {
		paths[AVX512] = &kit{
			both32: &passes[float32, float32]{true, true, 32, 3, sides(4, 4, 4), sides(sBoth4x1AVX512, sBoth4x2AVX512, sBoth4x3AVX512), sides(sBothStream4x1AVX512, sBothStream4x2AVX512, sBothStream4x3AVX512), sides(sBoth1x1AVX512, sBoth1x2AVX512, sBoth1x3AVX512), sAddAVX2},
			both16: &passes[uint16, float32]{true, true, 32, 3, sides(4, 4, 4), sides(hBoth4x1AVX512, hBoth4x2AVX512, hBoth4x3AVX512), sides(hBothStream4x1AVX512, hBothStream4x2AVX512, hBothStream4x3AVX512), sides(hBoth1x1AVX512, hBoth1x2AVX512, hBoth1x3AVX512), sAddAVX2},
			both64: &passes[float64, float64]{true, true, 16, 3, sides(4, 4, 4), sides(dBoth4x1AVX512, dBoth4x2AVX512, dBoth4x3AVX512), sides(dBothStream4x1AVX512, dBothStream4x2AVX512, dBothStream4x3AVX512), sides(dBoth1x1AVX512, dBoth1x2AVX512, dBoth1x3AVX512), dAddAVX2},
			forward: &passes[float32, float64]{true, false, 16, 6, sides(4, 4, 4, 4, 4, 4),
				sides(wForward4x1AVX512, wForward4x2AVX512, wForward4x3AVX512, wForward4x4AVX512, wForward4x5AVX512, wForward4x6AVX512),
				sides(wForwardStream4x1AVX512, wForwardStream4x2AVX512, wForwardStream4x3AVX512, wForwardStream4x4AVX512, wForwardStream4x5AVX512, wForwardStream4x6AVX512),
				sides(wForward1x1AVX512, wForward1x2AVX512, wForward1x3AVX512, wForward1x4AVX512, wForward1x5AVX512, wForward1x6AVX512), nil},
			forward64: &passes[float64, float64]{true, false, 16, 6, sides(4, 4, 4, 4, 4, 4),
				sides(dForward4x1AVX512, dForward4x2AVX512, dForward4x3AVX512, dForward4x4AVX512, dForward4x5AVX512, dForward4x6AVX512),
				sides(dForwardStream4x1AVX512, dForwardStream4x2AVX512, dForwardStream4x3AVX512, dForwardStream4x4AVX512, dForwardStream4x5AVX512, dForwardStream4x6AVX512),
				sides(dForward1x1AVX512, dForward1x2AVX512, dForward1x3AVX512, dForward1x4AVX512, dForward1x5AVX512, dForward1x6AVX512), nil},
			backward: &passes[float32, float64]{false, true, 16, 6, sides(4, 4, 4, 4, 4, 4),
				sides(wBackward4x1AVX512, wBackward4x2AVX512, wBackward4x3AVX512, wBackward4x4AVX512, wBackward4x5AVX512, wBackward4x6AVX512),
				sides(wBackwardStream4x1AVX512, wBackwardStream4x2AVX512, wBackwardStream4x3AVX512, wBackwardStream4x4AVX512, wBackwardStream4x5AVX512, wBackwardStream4x6AVX512),
				sides(wBackward1x1AVX512, wBackward1x2AVX512, wBackward1x3AVX512, wBackward1x4AVX512, wBackward1x5AVX512, wBackward1x6AVX512), nil},
			backward64: &passes[float64, float64]{false, true, 16, 6, sides(4, 4, 4, 4, 4, 4),
				sides(dBackward4x1AVX512, dBackward4x2AVX512, dBackward4x3AVX512, dBackward4x4AVX512, dBackward4x5AVX512, dBackward4x6AVX512),
				sides(dBackwardStream4x1AVX512, dBackwardStream4x2AVX512, dBackwardStream4x3AVX512, dBackwardStream4x4AVX512, dBackwardStream4x5AVX512, dBackwardStream4x6AVX512),
				sides(dBackward1x1AVX512, dBackward1x2AVX512, dBackward1x3AVX512, dBackward1x4AVX512, dBackward1x5AVX512, dBackward1x6AVX512), nil},
			vectors: true, pack: sPackAVX512, unpack: sUnpackAVX512,
			squares64: dSquaresAVX512, absolutes64: dAbsolutesAVX512, absolutes32: sAbsolutesAVX512,
		}
	}
	return paths
}

// sides returns v by the number of right-hand sides, from one on.
func sides[T any](v ...T) (by [mostSides + 1]T) {
	copy(by[1:], v)
	return by
}
