package experiments_test

import (
	"fmt"

	"github.com/krrlab/lab/experiments"
)

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
