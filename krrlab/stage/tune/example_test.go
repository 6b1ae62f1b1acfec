package tune_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage/tune"
)

// Choose the kernel, σ and λ for a function of two variables. The search does not vary options that are set.
func Example() {
	train := datasets.SyntheticRegression(250, 2, 0.1, 1)
	lab, err := krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := lab.Tune(context.Background(), tune.Options{Kernels: []string{"gaussian"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Best.Kernel, "RMSE below 0.13:", r.Best.Error < 0.13, "interval around it:",
		r.Best.Lo < r.Best.Error && r.Best.Error < r.Best.Hi)
	// Output:
	// gaussian RMSE below 0.13: true interval around it: true
}
