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

// This example solves a problem with known noise by the preconditioned method and by plain conjugate gradients. Both
// give the same answer, and the preconditioned method needs fewer iterations.
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

// Verify recomputes the residual and the bounds of an answer with code that shares nothing with the solver.
func ExampleVerify() {
	ctx := context.Background()
	train := datasets.SyntheticRegression(500, 4, 0.1, 1)
	lab, err := krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Tol: 1e-5})
	if err != nil {
		fmt.Println(err)
		return
	}
	sol, err := lab.Solve(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := krrlab.Verify(ctx, sol.Model, krrlab.VerifyOptions{Train: train})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("targets %s; residual at most 1e-5: %v; κ(K+λI) ≤ %.0f\n", v.Targets,
		float64(v.Residual)+float64(v.Rounding) <= 1e-5, v.Cond.Hi)
	// Output:
	// targets given; residual at most 1e-5: true; κ(K+λI) ≤ 1730
}

// A Monitor stops the solve after 8 iterations. The report has the true residual of the answer and does not call it
// converged, and the model can predict.
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
