package weighted_test

import (
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/weighted"
)

// The plain problem of two weighted points.
func Example() {
	train := &datasets.Dataset{X: points.NewDense(2, 1, []float64{0, 1}), Target: []float64{3, 4},
		Weights: []float64{1, 4}}
	plain, k, err := weighted.Problem(train, kernel.Gaussian{Sigma: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	x, z := make([]float64, 2), make([]float64, 2)
	plain.X.RowTo(x, 0)
	plain.X.RowTo(z, 1)
	fmt.Printf("%v: %.4f\n", k, k.Eval(x, z))
	// Output: weighted gaussian(sigma=1): 1.2131
}
