package krrlab_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// A problem whose noise is known is solved by the preconditioned method and by plain
// conjugate gradients: the same answer, after fewer iterations.
func Example() {
	ctx := context.Background()
	all := datasets.SyntheticRegression(3000, 4, 0.1, 1)
	train, test := all.Slice(0, 2000), all.Slice(2000, 3000)
	for _, precond := range []krrlab.Preconditioner{krrlab.Features{S: 500, LambdaP: 0.1}, krrlab.None{}} {
		lab, err := krrlab.New(train, krrlab.Config{
			Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Precond: precond, Tol: 1e-5,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		sol, err := lab.Solve(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		score, err := sol.Model.Evaluate(ctx, test, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%-3v %s; fewer than 50 iterations: %v; RMSE %.3f, noise 0.1\n", sol.Solver, sol.Status,
			sol.Iterations < 50, score.RMSE)
	}
	// Output:
	// pcg converged; fewer than 50 iterations: true; RMSE 0.104, noise 0.1
	// cg  converged; fewer than 50 iterations: false; RMSE 0.104, noise 0.1
}
