package vecchia_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/vecchia"
)

// Example solves with a kernel so narrow that K has no low rank, by conjugate gradients without a preconditioner and
// with the sparse inverse.
func Example() {
	ctx := context.Background()
	data := datasets.SyntheticRegression(1000, 3, 0.1, 1)
	kernelMatrix, err := gram.New(ctx, kernel.Gaussian{Sigma: 0.2}, data.X, 0.01, nil)
	if err != nil {
		panic(err)
	}
	m, err := vecchia.New(ctx, kernelMatrix, nil, &vecchia.Options{Neighbors: 30, Damping: 1})
	if err != nil {
		panic(err)
	}
	for _, m := range []pcg.Preconditioner{nil, m} {
		result, err := pcg.Solve(ctx, kernelMatrix, m, mat.NewDense(1000, 1, data.Target), &pcg.Options{Tol: 1e-3})
		if err != nil {
			panic(err)
		}
		fmt.Println(result.Iterations < 10, result.Status)
	}
	// Output:
	// false converged
	// true converged
}
