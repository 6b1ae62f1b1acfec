package plots_test

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/plots"
	_ "github.com/krrlab/lab/plots/draw"
)

// A table can be written as text and as CSV.
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

// Residuals of two preconditioners are drawn with the tolerance.
func ExampleConvergence() {
	f := plots.Convergence("Two preconditioners", 1e-3,
		plots.Series{Name: "λ_p = λ", Y: []float64{1, 0.3, 0.08, 0.02, 5e-3, 9e-4}},
		plots.Series{Name: "λ_p = 10λ", Y: []float64{1, 0.2, 0.03, 4e-3, 6e-4}},
	)
	fmt.Println(f.HLines[0].Label)
	fmt.Println(plots.CheckFormat("convergence.gif"))
	// Output:
	// tolerance 10⁻³
	// plots: convergence.gif: the name of a figure ends in .svg, .png, .pdf or .html
}

// Eigenvalues are drawn against their index, with λ as a line.
func ExampleSpectrum() {
	f := plots.Spectrum("Eigenvalues of K", 1e-2, plots.Series{Name: "K", Y: []float64{100, 10, 1, 0.1, 0.01, 0.001}})
	fmt.Print(f)
	fmt.Println(f.Series[0].X, f.HLines[0].Label)
	// Output:
	// Eigenvalues of K
	// eigenvalue against index i
	// K: 6 samples from 10⁻³ to 100
	// [1 2 3 4 5 6] λ = 10⁻²
}

// Condition numbers are drawn against the sketch size, with their intervals and the target.
func ExampleLadder() {
	f := plots.Ladder("Doubling s until κ ≤ 30", "κ(M⁻¹A)", 30, 2, plots.Series{
		Name: "κ, 95 % interval",
		X:    []float64{500, 1000, 2000},
		Y:    []float64{160, 61, 21},
		Lo:   []float64{150, 58, 20},
		Hi:   []float64{190, 70, 24},
	})
	fmt.Println(f.HLines[0].Label)
	fmt.Println(f.Marks[0].Label)
	fmt.Print(f)
	// Output:
	// target 30
	// s = 2000
	// Doubling s until κ ≤ 30
	// κ(M⁻¹A) against sketch size s
	// κ, 95 % interval: 3 samples from 21 to 160
}

// A quantity is drawn against a parameter, with reference lines at special values.
func ExampleSweep() {
	at := []plots.RefLine{{At: 1e-6, Label: "λ"}, {At: 1e-4, Label: "λ+η"}}
	lambdaP := []float64{1e-7, 1e-6, 1e-5, 1e-4, 1e-3}
	f := plots.Sweep("κ against λ_p", "λ_p", "κ(M⁻¹A)", at,
		plots.Series{Name: "κ", X: lambdaP, Y: []float64{200, 22, 5, 8, 60}},
		plots.Series{Name: "bound", X: lambdaP, Y: []float64{900, 110, 31, 35, 240}},
	)
	fmt.Println(f.Validate())
	fmt.Print(f)
	// Output:
	// <nil>
	// κ against λ_p
	// κ(M⁻¹A) against λ_p
	// κ: 5 samples from 5 to 200
	// bound: 5 samples from 31 to 900
}

// A matrix of values is drawn in colors.
func ExampleMap() {
	f := plots.Map("Condition number", "sketch size s", "λ_p", "κ(M⁻¹A)",
		[]float64{1000, 2000, 4000}, []float64{1e-6, 1e-4},
		[][]float64{{24, 12.5, 6.75}, {4.4, 2.8, math.NaN()}})
	f.Marks = []plots.Mark{{X: 2000, Y: 1e-4, Label: "least seconds"}}
	f.VLines = []plots.RefLine{{At: 1e3, Label: "s_λ"}}
	fmt.Print(f)
	// Output:
	// Condition number
	// λ_p against sketch size s
	// κ(M⁻¹A): 2×3 cells from 2.8 to 24
}

// A grid has several figures. A grid that cannot be drawn shows the reason.
func ExampleGrid() {
	panel := func(title string, rate float64) *plots.Figure {
		return plots.Convergence(title, 1e-3,
			plots.Series{Name: "pcg", Y: []float64{1, rate, rate * rate}},
			plots.Series{Name: "cg", Y: []float64{1, 0.9, 0.8}})
	}
	f := plots.Grid("Two data sets", 2, panel("MNIST", 0.1), panel("IJCNN1", 0.02))
	f.ShareX = true
	fmt.Print(f)
	f.Panels[1].Series[0].X = []float64{1}
	fmt.Print(f.HTML())
	// Output:
	// Two data sets
	// 2 panels
	//   MNIST
	//   relative residual against iteration
	//   pcg: 3 samples from 10⁻² to 1
	//   cg: 3 samples from 0.8 to 1
	//   IJCNN1
	//   relative residual against iteration
	//   pcg: 3 samples from 4×10⁻⁴ to 1
	//   cg: 3 samples from 0.8 to 1
	// <pre>plots: figure &#34;Two data sets&#34;: panel 2 (&#34;IJCNN1&#34;): series &#34;pcg&#34; has 1 values of x and 3 of y</pre>
}
