package explain_test

import (
	"context"
	"fmt"
	"log"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model/explain"
)

// A model is fitted to some of the rows, and the importance of each feature is measured on other rows.
func Example() {
	ctx := context.Background()
	rows := datasets.SyntheticRegression(300, 3, 0.1, 1)
	train, test, err := rows.Holdout(0.5, 1)
	if err != nil {
		log.Fatal(err)
	}
	lab, err := krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1})
	if err != nil {
		log.Fatal(err)
	}
	sol, err := lab.Solve(ctx)
	if err != nil {
		log.Fatal(err)
	}
	e, err := explain.Run(ctx, sol.Model, test, explain.Options{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range e.Columns {
		fmt.Printf("%s: %.2f ± %.2f\n", c.Column, c.Mean, float64(c.StandardError))
	}
	// Output:
	// feature 2: 0.81 ± 0.04
	// feature 0: 0.67 ± 0.03
	// feature 1: 0.26 ± 0.02
}
