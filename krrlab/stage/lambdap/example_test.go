package lambdap_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage/lambdap"
)

// A sweep finds the λ_p with the fewest iterations and compares it with λ_p = λ.
func Example() {
	train := datasets.SyntheticRegression(400, 4, 0.1, 1)
	lab, err := krrlab.New(train, krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.01, Solver: krrlab.PCG, Precond: krrlab.Features{S: 100},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := lab.LambdaP(context.Background(), lambdap.Options{Points: 7})
	if err != nil {
		fmt.Println(err)
		return
	}
	sweep := result.Sweeps[0]
	best, unchanged := sweep.At(result.BestLambdaP), sweep.At(0.01)
	fmt.Printf("λ_p above λ: %v\n", result.BestLambdaP > 0.01)
	fmt.Printf("fewer iterations than λ_p = λ: %v\n", *best.Iterations < *unchanged.Iterations)
	// Output:
	// λ_p above λ: true
	// fewer iterations than λ_p = λ: true
}

// The bound by η is smallest at λ_p = λ+η, and about equal for a λ_p ten times smaller and ten times larger.
func ExampleBound() {
	const lambda, eta = 0.01, 1.0
	for _, lambdaP := range []float64{lambda, 10 * lambda, lambda + eta, 10} {
		fmt.Printf("λ_p = %-5g κ ≤ %.4g\n", lambdaP, lambdap.Bound(lambda, lambdaP, eta))
	}
	// Output:
	// λ_p = 0.01  κ ≤ 1.02e+04
	// λ_p = 0.1   κ ≤ 1111
	// λ_p = 1.01  κ ≤ 201
	// λ_p = 10    κ ≤ 1100
}
