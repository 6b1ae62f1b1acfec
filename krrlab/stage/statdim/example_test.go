package statdim_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage/statdim"
)

// The statistical dimension s_λ is computed from all eigenvalues of K, and estimated by Hutchinson's method from random
// probe vectors. The solves for the probes are preconditioned by 300 random features. They stop when the width of the
// interval of s_λ falls below 10 % of the estimate, the default of Options.Width.
func Example() {
	ctx := context.Background()
	lab, err := krrlab.New(datasets.SyntheticRegression(1000, 4, 0.1, 1), krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: krrlab.PCG, Precond: krrlab.Features{S: 300},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	exact, err := lab.StatDim(ctx, statdim.Options{Method: statdim.Exact})
	if err != nil {
		fmt.Println(err)
		return
	}
	hutchinson, err := lab.StatDim(ctx, statdim.Options{Method: statdim.Hutchinson})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("s_λ = %.1f; the probes' interval covers it: %v, width below 10 %%: %v\n",
		exact.Estimate.Value, hutchinson.Estimate.Contains(exact.Estimate.Value), hutchinson.WidthReached)
	// Output:
	// s_λ = 83.9; the probes' interval covers it: true, width below 10 %: true
}

// A result that was saved as JSON can be shown without its data.
func Example_json() {
	var result statdim.Result
	err := json.Unmarshal([]byte(`{
		"dataset": "blobs", "task": "classification", "n": 300, "d": 2, "t": 1, "lambda": 0.1, "kernel": {"name": "gaussian", "sigma": 2},
		"method": "exact", "width_asked": 0.1, "width_reached": true, "seconds": 0.02,
		"estimate": {"value": 41.25, "lo": 41.2, "hi": 41.3, "confidence": 1, "method": "exact"}}`), &result)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(&result)
	// Output:
	// data           blobs: classification, n = 300, d = 2, t = 1
	// problem        kernel gaussian(sigma=2), λ = 0.1
	// method         exact
	// s_λ(K)         41.25 at λ = 0.1
	// interval       [41.2, 41.3], certain up to rounding, width 0.24 % of the value
	// milliseconds   20.0
}
