package gemm_test

import (
	"fmt"

	"gonum.org/v1/gonum/blas"

	"github.com/krrlab/lab/krrlab/accel/gemm"
)

// C = AB with A 2×3 and B 3×2, row by row.
func ExampleGemm() {
	a := []float64{1, 2, 3, 4, 5, 6}
	b := []float64{1, 0, 0, 1, 1, 1}
	c := make([]float64, 4)
	gemm.Gemm(blas.NoTrans, blas.NoTrans, 2, 2, 3, 1, a, 3, b, 2, 0, c, 2)
	fmt.Println(c)
	// Output: [4 5 10 11]
}
