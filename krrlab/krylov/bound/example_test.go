package bound_test

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/krylov/bound"
)

// Example counts the open labels of three points whose decision values have errors of at most 0.3 for k(x, x) = 1.
// The label of the second point may change.
func Example() {
	f := mat.NewDense(3, 3, []float64{
		0.9, -0.8, -0.7,
		0.1, 0.2, -0.9,
		-0.9, -0.5, 0.8,
	})
	fmt.Println(bound.UndecidedRows(f, []float64{1, 1, 1}, []float64{0.3, 0.3, 0.3}), "open")
	// Output: 1 open
}
