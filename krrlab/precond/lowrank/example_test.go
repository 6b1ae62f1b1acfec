package lowrank_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

// Example solves kernel ridge regression on 600 points with a preconditioner from 60 columns of K.
func Example() {
	const n, lambda = 600, 0.01
	ctx := context.Background()
	x := points.NewDense(n, 3, nil)
	rng.New(1).Normals(x.Data, 0)
	y := mat.NewDense(n, 1, nil)
	for i := range n {
		y.Set(i, 0, x.Row(i)[0]*x.Row(i)[1])
	}
	k, err := gram.New(ctx, kernel.Gaussian{Sigma: 2}, x, lambda, &gram.Options{Storage: gram.Float64})
	if err != nil {
		panic(err)
	}
	f, err := lowrank.RPCholesky(ctx, k, 60, rng.New(1).Sub("landmarks"), nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("rank %d leaves %.4f of the trace\n", f.Rank(), f.Residual/f.Trace)
	m, err := precond.New(ctx, f.F, lambda, nil)
	if err != nil {
		panic(err)
	}
	for _, m := range []pcg.Preconditioner{precond.Identity{N: n}, m} {
		result, err := pcg.Solve(ctx, k, m, y, nil)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%T: %v within 10 iterations: %t\n", m, result.Status, result.Iterations <= 10)
	}
	// Output:
	// rank 60 leaves 0.0006 of the trace
	// precond.Identity: converged within 10 iterations: false
	// *precond.Woodbury: converged within 10 iterations: true
}
