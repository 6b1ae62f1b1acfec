package krrlab_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// A Monitor stops the solve after 8 iterations. The answer has its true residual, does not count as converged, and
// predicts.
func ExampleLab_Solve_stop() {
	ctx := context.Background()
	all := datasets.SyntheticRegression(3000, 4, 0.1, 1)
	train, test := all.Slice(0, 2000), all.Slice(2000, 3000)
	lab, err := krrlab.New(train, krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Precond: krrlab.Features{S: 500, LambdaP: 0.1}, Tol: 1e-8,
		Monitor: func(e krrlab.Event) error {
			if e.Stage == stage.Solve && e.Iteration == 8 {
				return pcg.ErrStop
			}
			return nil
		},
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
	fmt.Printf("%v after %d iterations, converged: %v\n", sol.Status, sol.Iterations, sol.Converged())
	fmt.Printf("residual above 1e-8: %v; RMSE %.2f, noise 0.1\n", sol.TrueResidual > 1e-8, score.RMSE)
	// Output:
	// stopped after 8 iterations, converged: false
	// residual above 1e-8: true; RMSE 0.10, noise 0.1
}
