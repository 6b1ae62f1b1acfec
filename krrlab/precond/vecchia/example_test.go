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
	d := datasets.SyntheticRegression(1000, 3, 0.1, 1)
	a, err := gram.New(ctx, kernel.Gaussian{Sigma: 0.2}, d.X, 0.01, nil)
	if err != nil {
		panic(err)
	}
	m, err := vecchia.New(ctx, a, nil, &vecchia.Options{Neighbors: 30, Damping: 1})
	if err != nil {
		panic(err)
	}
	for _, m := range []pcg.Preconditioner{nil, m} {
		res, err := pcg.Solve(ctx, a, m, mat.NewDense(1000, 1, d.Target), &pcg.Options{Tol: 1e-3})
		if err != nil {
			panic(err)
		}
		fmt.Println(res.Iterations < 10, res.Status)
	}
	// Output:
	// false converged
	// true converged
}
