package compare_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// jacobi is a user-defined preconditioner, the diagonal of A.
type jacobi struct {
	n    int
	diag float64
}

func (m jacobi) Dim() int { return m.n }

func (m jacobi) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	dst.Scale(1/m.diag, r)
	return nil
}

// A user-defined preconditioner is compared with built-in ones.
func Example() {
	lab, err := krrlab.New(datasets.SyntheticRegression(1000, 4, 0.1, 1), krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: krrlab.PCG})
	if err != nil {
		panic(err)
	}
	result, err := lab.Compare(context.Background(), krrlab.CompareOptions{},
		krrlab.Given{M: jacobi{1000, 1.1}, Name: "Jacobi"}, krrlab.RPCholesky{S: 200, LambdaP: 1})
	if err != nil {
		panic(err)
	}
	for _, row := range result.Rows {
		fmt.Println(row.Name, row.Status, *row.Iterations > 50)
	}
	// Output:
	// none converged true
	// Jacobi converged true
	// randomly pivoted Cholesky converged false
}
