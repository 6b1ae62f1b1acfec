package krrlab_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// Landmarks race against no preconditioner, and the solve goes on with the winner, whoever that is, from where
// the race ended.
func ExampleLab_Race() {
	ctx := context.Background()
	cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: krrlab.PCG}
	lab, err := krrlab.New(datasets.SyntheticRegression(1000, 4, 0.1, 1), cfg)
	if err != nil {
		panic(err)
	}
	r, err := lab.Race(ctx, krrlab.RaceOptions{Runners: krrlab.Runners(cfg.Kernel, krrlab.PrecondSpec{S: 200}, "nystrom", "rpcholesky")})
	if err != nil {
		panic(err)
	}
	w := r.Best()
	p, err := krrlab.PrecondSpec{Name: w.Name, S: w.S}.Preconditioner(cfg.Kernel)
	if err != nil {
		panic(err)
	}
	if lab, err = lab.With(func(c *krrlab.Config) { c.Precond = p }); err != nil {
		panic(err)
	}
	sol, err := lab.Solve(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(r.Racers), "racers; the solve with the winner:", sol.Status)
	// Output:
	// 3 racers; the solve with the winner: converged
}
