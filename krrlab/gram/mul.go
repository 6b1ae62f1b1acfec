package gram

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
)

// gemvColumns returns up to how many right-hand sides a tile is multiplied
// column by column. OpenBLAS's gemm copies the tile before it multiplies, at
// the price of about five passes; its gemv reads the tile, in the second cache,
// where it lies. Measured with 512×512 float32 tiles, one core, GB of K a second:
//
//	t         1     2     3    10
//	gemv   11.6   5.9   6.1   2.0
//	gemm    3.6   4.3   2.7   2.8
//
// gonum's gemm is slower than its gemv at any t.
func gemvColumns() int {
	if accel.InUse().Name == "gonum" {
		return 1 << 30
	}
	return 4
}

// tileMul32 multiplies one rows×cols tile T both ways, for t right-hand sides:
//
//	yi = T·xj   (rows×t)   and, if yj is not nil,   yj = Tᵀ·xi   (cols×t).
//
// Blocks of vectors are stored by columns: entry (r, c) of xi is xi[c*rows+r].
// This is the loop in which the solver spends its time.
func tileMul32(yi, yj, tile []float32, rows, cols int, xi, xj []float32, t, gemv int) {
	a := blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: tile}
	if t <= gemv {
		for c := range t {
			blas32.Gemv(blas.NoTrans, 1, a, vec32(xj, c, cols), 0, vec32(yi, c, rows))
			if yj != nil {
				blas32.Gemv(blas.Trans, 1, a, vec32(xi, c, rows), 0, vec32(yj, c, cols))
			}
		}
		return
	}
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, cols32(xj, t, cols), a, 0, cols32(yi, t, rows)) // yiᵀ = xjᵀ·Tᵀ
	if yj != nil {
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, cols32(xi, t, rows), a, 0, cols32(yj, t, cols)) // yjᵀ = xiᵀ·T
	}
}

// tileMul64 is tileMul32 in float64.
func tileMul64(yi, yj, tile []float64, rows, cols int, xi, xj []float64, t, gemv int) {
	a := blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: tile}
	if t <= gemv {
		for c := range t {
			blas64.Gemv(blas.NoTrans, 1, a, vec64(xj, c, cols), 0, vec64(yi, c, rows))
			if yj != nil {
				blas64.Gemv(blas.Trans, 1, a, vec64(xi, c, rows), 0, vec64(yj, c, cols))
			}
		}
		return
	}
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, cols64(xj, t, cols), a, 0, cols64(yi, t, rows)) // yiᵀ = xjᵀ·Tᵀ
	if yj != nil {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, cols64(xi, t, rows), a, 0, cols64(yj, t, cols)) // yjᵀ = xiᵀ·T
	}
}

func vec32(x []float32, c, n int) blas32.Vector {
	return blas32.Vector{N: n, Inc: 1, Data: x[c*n : (c+1)*n]}
}

func vec64(x []float64, c, n int) blas64.Vector {
	return blas64.Vector{N: n, Inc: 1, Data: x[c*n : (c+1)*n]}
}

func cols32(x []float32, t, n int) blas32.General {
	return blas32.General{Rows: t, Cols: n, Stride: n, Data: x}
}

func cols64(x []float64, t, n int) blas64.General {
	return blas64.General{Rows: t, Cols: n, Stride: n, Data: x}
}
