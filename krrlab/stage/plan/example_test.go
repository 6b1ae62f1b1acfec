package plan_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// This example predicts the costs of a solve for a million points on imaginary machines.
func Example() {
	options := plan.Options{Nodes: 8, Cores: 32, Bandwidth: 10, Latency: 50e3, Memory: 64e9,
		Rates: "gemm32=3000,gemm64=1500,read=100,exp=40,entry=11"}
	scaling, err := options.Scale(context.Background(), stage.Header{N: 1e6, D: 784, T: 10}, true,
		cost.Candidate{Solver: cost.PCG, Preconditioner: recipe.Features{S: 20000}, Iterations: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("K %v, %.0f s\n", scaling.Requested.Storage, scaling.Requested.Seconds.Total)
	// Output:
	// K recompute, 750 s
}
