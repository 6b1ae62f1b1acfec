package lanczos_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

// path is the graph Laplacian of a path, with eigenvalues 2−2cos(πi/n).
type path int

func (n path) Dim() int { return int(n) }

func (n path) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	for i := range int(n) {
		var v float64
		for _, j := range []int{i - 1, i + 1} {
			if j >= 0 && j < int(n) {
				v += src.At(i, 0) - src.At(j, 0)
			}
		}
		dst.Set(i, 0, v)
	}
	return ctx.Err()
}

// Example bounds the largest eigenvalue of a matrix of order 10,000 with a few dozen products.
func Example() {
	res, err := lanczos.Run(context.Background(), path(10000), &lanczos.Options{
		Quantity: lanczos.LargestEigenvalue, Confidence: 0.99, Tol: 0.02, Start: rng.New(1),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("converged: %v, fewer than 50 products: %v\n", res.Converged, res.Steps < 50)
	fmt.Printf("λ_max in [%.2f, %.2f]\n", res.Max.Lo, res.Max.Hi)
	// Output:
	// converged: true, fewer than 50 products: true
	// λ_max in [4.00, 4.07]
}
