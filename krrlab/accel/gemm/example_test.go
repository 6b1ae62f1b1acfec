package gemm_test

import (
	"fmt"

	"gonum.org/v1/gonum/blas"

	"github.com/krrlab/lab/krrlab/accel/gemm"
)

// ExampleGemm computes C = AB for a 2×3 matrix A and a 3×2 matrix B.
func ExampleGemm() {
	a := []float64{1, 2, 3, 4, 5, 6}
	b := []float64{1, 0, 0, 1, 1, 1}
	c := make([]float64, 4)
	gemm.Gemm(gemm.Product[float64]{TransA: blas.NoTrans, TransB: blas.NoTrans, M: 2, N: 2, K: 3, Alpha: 1, A: a,
		LDA: 3,
		B:   b, LDB: 2, C: c, LDC: 2})
	fmt.Println(c)
	// Output: [4 5 10 11]
}
