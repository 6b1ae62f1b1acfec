package gram

import "github.com/krrlab/lab/krrlab/accel/simd"

// tileMul multiplies one rows×cols tile T both ways, for t right-hand sides:
//
//	yi = T·xj   (rows×t)   and   yj = Tᵀ·xi   (cols×t).
//
// Blocks of vectors are stored by columns: entry (r, c) of xi is xi[c*rows+r].
// This is the loop in which the solver spends its time.
func tileMul[T float](yi, yj, tile []T, rows, cols int, xi, xj []T, t int, w *simd.Workspace) {
	clear(yi)
	clear(yj)
	simd.Both(rows, cols, tile, cols, xj, yj, xi, yi, t, w)
}
