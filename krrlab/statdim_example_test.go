package krrlab_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// The statistical dimension by all eigenvalues, and by probes in a preconditioned solve.
func ExampleLab_StatDim() {
	ctx := context.Background()
	lab, err := krrlab.New(datasets.SyntheticRegression(1000, 4, 0.1, 1), krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: krrlab.PCG, Precond: krrlab.Features{S: 300},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	exact, err := lab.StatDim(ctx, krrlab.StatDimOptions{Method: krrlab.ExactStatDim})
	if err != nil {
		fmt.Println(err)
		return
	}
	probes, err := lab.StatDim(ctx, krrlab.StatDimOptions{Method: krrlab.Hutchinson})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("s_λ = %.1f; the probes' interval covers it: %v, width below 10 %%: %v\n",
		exact.Estimate.Value, probes.Estimate.Covers(exact.Estimate.Value), probes.Reached)
	// Output:
	// s_λ = 83.9; the probes' interval covers it: true, width below 10 %: true
}

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
	fmt.Printf("targets %s; residual at most 1e-5: %v; κ(K+λI) ≤ %.0f\n", v.Targets, float64(v.Residual)+float64(v.Rounding) <= 1e-5, v.Cond.Hi)
	// Output:
	// targets given; residual at most 1e-5: true; κ(K+λI) ≤ 1730
}
