package stage_test

import (
	"context"
	"encoding/json"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// PowerMethod holds the options of a user-defined stage, which computes ‖K‖₂ by the power method.
type PowerMethod struct {
	Steps int `flag:"steps" default:"20" check:">=1" help:"products with K"`
}

// Norms is the result of PowerMethod.
type Norms struct {
	stage.Header
	Norms []float64 `json:"norms"`
}

// Run implements stage.Runner. It uses K of the bench, reports progress, and returns its partial result if it is
// stopped.
func (o PowerMethod) Run(ctx context.Context, bench stage.Bench) (stage.Stage, error) {
	if err := schema.Complete(&o); err != nil {
		return nil, err
	}
	k, err := bench.K(ctx, 0) // This stage needs no memory in addition to K.
	if err != nil {
		return nil, err
	}
	result, vector := &Norms{Header: bench.Problem().Header}, mat.NewDense(k.Dim(), 1, nil)
	vector.Apply(func(int, int, float64) float64 { return 1 }, vector)
	for ctx.Err() == nil && len(result.Norms) < o.Steps {
		vector.Scale(1/mat.Norm(vector, 2), vector)
		if err := k.KMulTo(ctx, vector, vector); err != nil {
			return result, err
		}
		result.Norms = append(result.Norms, mat.Norm(vector, 2))
		bench.Notify(ctx, stage.Event{Stage: "power method", Done: len(result.Norms), Total: o.Steps})
	}
	return result, ctx.Err()
}

// String returns the report, with a line on the last norm if there is one.
func (n *Norms) String() string {
	var lines stage.Lines
	lines.AddProblem(&n.Header)
	if products := len(n.Norms); products > 0 {
		lines.Add("‖K‖₂", "at least %.4g after %d products", n.Norms[products-1], products)
	}
	return lines.String()
}

// Table has one row for each product.
func (n *Norms) Table() *plots.Table {
	table := &plots.Table{Columns: []plots.Column{{Name: "‖K‖₂"}}}
	for _, norm := range n.Norms {
		table.Add(norm)
	}
	return table
}

// Plot shows the norms against the number of products.
func (n *Norms) Plot() *plots.Figure {
	series := plots.Series{Name: "‖K‖₂"}
	for i, norm := range n.Norms {
		series.Add(float64(i+1), norm)
	}
	return &plots.Figure{X: plots.Axis{Label: "products"}, Y: plots.Axis{Label: "‖K‖₂, at least"},
		Series: []plots.Series{series}}
}

// HTML returns the report, the figure and the table for a notebook.
func (n *Norms) HTML() string { return stage.HTML(n) }

// The monitor of the configuration ends a user-defined stage after three products. Its result is shown and saved like
// those of built-in stages.
func Example_userDefined() {
	lab, err := krrlab.New(datasets.SyntheticRegression(200, 2, 0.1, 1), krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Monitor: func(e stage.Event) error {
			if e.Stage == "power method" && e.Done == 3 {
				return context.Canceled
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := lab.Run(context.Background(), PowerMethod{})
	fmt.Println(err)
	fmt.Print(result)
	text, _ := json.Marshal(result)
	var loaded Norms
	fmt.Println(json.Unmarshal(text, &loaded), len(loaded.Norms), len(result.Table().Rows), result.Plot().Validate())
	_, err = lab.Run(context.Background(), PowerMethod{Steps: -1})
	fmt.Println(err)
	// Output:
	// context canceled
	// data           synthetic-regression: regression, n = 200, d = 2, t = 1
	// problem        kernel gaussian(sigma=1), λ = 0.1
	// ‖K‖₂           at least 115.6 after 3 products
	// <nil> 3 3 <nil>
	// Steps -1: want at least 1, such as 20
}
