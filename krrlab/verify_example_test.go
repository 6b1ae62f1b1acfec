package krrlab_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// What is proved of an answer, recomputed by code that shares nothing with the solver.
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
