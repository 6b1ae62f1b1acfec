package krrlab_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// How good is a preconditioner? An interval of κ that holds with 99 %, and the iterations.
func ExampleLab_Quality() {
	train := datasets.SyntheticRegression(400, 4, 0.1, 1)
	lab, err := krrlab.New(train, krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: krrlab.PCG, Precond: krrlab.Features{S: 200, LambdaP: 0.2},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	q, err := lab.Quality(context.Background(), krrlab.QualityOptions{Confidence: 0.99})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("κ(M⁻¹A) in [%.0f, %.0f] covers the exact one: %v\n", q.Kappa.Lo, q.Kappa.Hi, q.Kappa.Covers(q.Exact.Value))
	fmt.Printf("predicted within 5 of the actual iterations: %v\n", q.Predicted-*q.Actual <= 5 && *q.Actual-q.Predicted <= 5)
	// Output:
	// κ(M⁻¹A) in [15, 18] covers the exact one: true
	// predicted within 5 of the actual iterations: true
}

// Which λ_p takes the fewest iterations?
func ExampleLab_LambdaP() {
	train := datasets.SyntheticRegression(400, 4, 0.1, 1)
	lab, err := krrlab.New(train, krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.01, Solver: krrlab.PCG, Precond: krrlab.Features{S: 100},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := lab.LambdaP(context.Background(), krrlab.LambdaPOptions{Points: 7})
	if err != nil {
		fmt.Println(err)
		return
	}
	sweep := s.Sweeps[0]
	best, same := sweep.At(s.BestLambdaP), sweep.At(0.01)
	fmt.Printf("λ_p above λ: %v\n", s.BestLambdaP > 0.01)
	fmt.Printf("fewer iterations than λ_p = λ: %v\n", *best.Iterations < *same.Iterations)
	// Output:
	// λ_p above λ: true
	// fewer iterations than λ_p = λ: true
}
