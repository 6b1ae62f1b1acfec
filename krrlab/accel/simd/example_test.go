package simd_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/accel/simd"
)

// ExampleExp32 computes e^x of a row of float32 numbers.
func ExampleExp32() {
	x := []float32{0, 1, -1}
	simd.Exp32(x, x)
	fmt.Printf("%.6f\n", x)
	// Output: [1.000000 2.718282 0.367879]
}
