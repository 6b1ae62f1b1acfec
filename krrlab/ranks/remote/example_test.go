package remote_test

import (
	"context"
	"fmt"
	"log"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/ranks/remote"
)

// ExampleBackend solves on four ranks that mpirun starts on this machine.
func ExampleBackend() {
	train := datasets.SyntheticClasses(2000, 5, 3, 0, 1)
	lab, err := krrlab.New(train, krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 2}, Lambda: 0.1, Solver: krrlab.PCG,
		Backend: &remote.Backend{Ranks: 4},
	})
	if err != nil {
		log.Fatal(err)
	}
	sol, err := lab.Solve(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sol)
}
