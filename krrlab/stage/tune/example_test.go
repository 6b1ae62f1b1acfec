package tune_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage/tune"
)

// Choose σ and λ of a Gaussian kernel for a function of two variables. The search tries only the kernels in Kernels.
func Example() {
	train := datasets.SyntheticRegression(250, 2, 0.1, 1)
	lab, err := krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := lab.Tune(context.Background(), tune.Options{Kernels: []string{"gaussian"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Best.Kernel, "RMSE below 0.13:", result.Best.Error < 0.13, "interval around it:",
		result.Best.Lo < result.Best.Error && result.Best.Error < result.Best.Hi)
	// Output:
	// gaussian RMSE below 0.13: true interval around it: true
}
