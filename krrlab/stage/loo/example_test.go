package loo_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage/loo"
)

// Leave-one-out scores for three values of λ are computed exactly, and from one subspace with an interval.
func Example() {
	ctx := context.Background()
	lab, err := krrlab.New(datasets.SyntheticRegression(800, 4, 0.1, 1), krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: krrlab.PCG, Precond: krrlab.RPCholesky{S: 200},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	lambdas := []float64{0.1, 1, 10}
	exact, err := lab.LeaveOneOut(ctx, loo.Options{Lambdas: lambdas})
	if err != nil {
		fmt.Println(err)
		return
	}
	probes, err := lab.LeaveOneOut(ctx, loo.Options{Lambdas: lambdas, MaxExactN: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, score := range exact.Scores {
		fmt.Printf("λ = %-4g mean square %.3f; the interval covers it: %v\n", score.Lambda, score.Error.Value,
			probes.Scores[i].Error.Contains(score.Error.Value))
	}
	// Output:
	// λ = 0.1  mean square 0.010; the interval covers it: true
	// λ = 1    mean square 0.011; the interval covers it: true
	// λ = 10   mean square 0.051; the interval covers it: true
}
