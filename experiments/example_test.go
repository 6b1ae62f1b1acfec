package experiments_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/experiments"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// The tables of the paper can be looked up.
func ExamplePublished() {
	t, err := experiments.Published("table5")
	if err != nil {
		fmt.Println(err)
		return
	}
	t.Rows = t.Rows[:4]
	fmt.Print(t.Text())
	// Output:
	// Comparison between setting tolerance to 10⁻² and 10⁻³
	// dataset  tol_1e-2_iterations  tol_1e-2_error  tol_1e-3_iterations  tol_1e-3_error
	// ───────  ───────────────────  ──────────────  ───────────────────  ──────────────
	// GISETTE                    3           0.035                    6           0.035
	// ADULT                     10          0.1499                   13          0.1499
	// IJCNN1                    69          0.0138                  120          0.0139
	// MNIST                     54          0.0137                   85          0.0133
	// As published by Avron, Clarkson and Woodruff (2017).
}

// This user-defined experiment compares the errors for two tolerances.
func ExampleRun() {
	own := &experiments.Experiment{ID: "own", Title: "Two tolerances",
		Plan: func(experiments.Scale) []experiments.Entry {
			c := experiments.Case{
				Data: "synthetic-classes", N: 500, TestN: 500, Kernel: kernel.Spec{Name: "gaussian", Sigma: 0.5},
				PrecondSpec: krrlab.PrecondSpec{S: 100},
				Config:      krrlab.Config{Solver: krrlab.PCG, Lambda: 0.5, Seed: 1},
			}
			coarse, fine := c, c
			coarse.Tol, fine.Tol = 1e-1, 1e-6
			return []experiments.Entry{{Row: "classes", Role: "coarse", Case: coarse},
				{Row: "classes", Role: "fine", Case: fine}}
		}}
	plan := experiments.NewPlan(own, experiments.Smoke)
	reports, err := experiments.Run(context.Background(), []*experiments.Report{plan}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, role := range []string{"coarse", "fine"} {
		r := reports[0].Find("classes", role)[0].Result
		fmt.Printf("%-6s %s, error %.1f %%\n", role, r.Status, 100*r.Error())
	}
	// Output:
	// coarse converged, error 6.2 %
	// fine   converged, error 6.4 %
}
