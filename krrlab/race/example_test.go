package race_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/race"
)

// Landmarks race against no preconditioner.
func Example() {
	cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: krrlab.PCG,
		Precond: krrlab.Nystrom{S: 200}}
	lab, err := krrlab.New(datasets.SyntheticRegression(1000, 4, 0.1, 1), cfg)
	if err != nil {
		panic(err)
	}
	r, err := lab.Race(context.Background(), race.Options{Runners: []string{"nystrom", "rpcholesky"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(len(r.Racers), "racers; the winner is", r.Best().Phase)
	// Output:
	// 3 racers; the winner is done
}
