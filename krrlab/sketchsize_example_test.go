package krrlab_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// The number of features is doubled until κ(M⁻¹A) is surely below 30; a solve with them
// then needs few iterations.
func ExampleLab_SketchSize() {
	ctx := context.Background()
	train := datasets.SyntheticRegression(1000, 4, 0.1, 1)
	cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3, Solver: krrlab.PCG}
	lab, err := krrlab.New(train, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	size, err := lab.SketchSize(ctx, krrlab.SketchSizeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range size.Rungs {
		fmt.Printf("s = %4d: %s\n", r.S, r.Verdict)
	}
	cfg.Precond = krrlab.Features{S: size.S}
	if lab, err = krrlab.New(train, cfg); err != nil {
		fmt.Println(err)
		return
	}
	sol, err := lab.Solve(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: s = %d; %s, iterations at most %d: %v\n", size.Status, size.S, sol.Status, 20, sol.Iterations <= 20)
	// Output:
	// s =  125: reject
	// s =  250: accept
	// found: s = 250; converged, iterations at most 20: true
}
