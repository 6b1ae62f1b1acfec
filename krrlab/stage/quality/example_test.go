package quality_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage/quality"
)

// The quality of a preconditioner has an interval of κ, here with 99 % confidence, and the predicted and actual
// numbers of iterations.
func Example() {
	train := datasets.SyntheticRegression(400, 4, 0.1, 1)
	lab, err := krrlab.New(train, krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: krrlab.PCG,
		Precond: krrlab.Features{S: 200, LambdaP: 0.2},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := lab.Quality(context.Background(), quality.Options{Confidence: 0.99})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("κ(M⁻¹A) in [%.0f, %.0f] covers the exact one: %v\n", result.Kappa.Lo, result.Kappa.Hi,
		result.Kappa.Contains(result.Exact.Value))
	fmt.Printf("predicted within 5 of the actual iterations: %v\n", result.Predicted-*result.Iterations <= 5 &&
		*result.Iterations-result.Predicted <= 5)
	// Output:
	// κ(M⁻¹A) in [15, 18] covers the exact one: true
	// predicted within 5 of the actual iterations: true
}
