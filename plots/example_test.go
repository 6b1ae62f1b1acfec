package plots_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/krrlab/lab/plots"
)

func ExampleTable() {
	t := &plots.Table{
		Title: "Time to solve",
		Columns: []plots.Column{
			{Name: "data set"}, {Name: "n"}, {Name: "iterations"}, {Name: "time", Unit: "s", Format: "%.1f"},
		},
	}
	t.Add("MNIST", 60000, 57, 278.0)
	t.Add("ADULT", 32561, 13, nil)
	fmt.Print(t.Text())
	fmt.Print(t.CSV())
	// Output:
	// Time to solve
	// data set       n  iterations  time (s)
	// ────────  ──────  ──────────  ────────
	// MNIST     60,000          57     278.0
	// ADULT     32,561          13
	// data set,n,iterations,time (s)
	// MNIST,60000,57,278
	// ADULT,32561,13,
}

func ExampleConvergence() {
	f := plots.Convergence("Two preconditioners", 1e-3,
		plots.Series{Name: "λ_p = λ", Y: []float64{1, 0.3, 0.08, 0.02, 5e-3, 9e-4}},
		plots.Series{Name: "λ_p = 10λ", Y: []float64{1, 0.2, 0.03, 4e-3, 6e-4}},
	)
	dir, err := os.MkdirTemp("", "convergence")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	fmt.Println(f.Save(filepath.Join(dir, "convergence.svg")))
	fmt.Println(f.HLines[0].Label)
	fmt.Println(plots.CheckFormat("convergence.gif"))
	// Output:
	// <nil>
	// tolerance 10⁻³
	// plots: convergence.gif: a figure cannot be written as .gif, only as .svg, .png or .pdf
}
