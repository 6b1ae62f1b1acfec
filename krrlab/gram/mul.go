package gram

import "github.com/krrlab/lab/krrlab/accel/simd"

// tileMul32 multiplies one rows×cols tile T both ways, for t right-hand sides:
//
//	yi = T·xj   (rows×t)   and   yj = Tᵀ·xi   (cols×t).
//
// Blocks of vectors are stored by columns: entry (r, c) of xi is xi[c*rows+r].
// This is the loop in which the solver spends its time.
func tileMul32(yi, yj, tile []float32, rows, cols int, xi, xj []float32, t int, w *simd.Workspace) {
	clear(yi)
	clear(yj)
	simd.Both32(rows, cols, tile, cols, xj, yj, xi, yi, t, w)
}

// tileMul64 is tileMul32 in float64.
func tileMul64(yi, yj, tile []float64, rows, cols int, xi, xj []float64, t int, w *simd.Workspace) {
	clear(yi)
	clear(yj)
	simd.Both64(rows, cols, tile, cols, xj, yj, xi, yi, t, w)
}
