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
func (o PowerMethod) Run(ctx context.Context, b stage.Bench) (stage.Stage, error) {
	if err := schema.Complete(&o); err != nil {
		return nil, err
	}
	k, err := b.K(ctx, 0) // no bytes are needed in addition to K
	if err != nil {
		return nil, err
	}
	r, v := &Norms{Header: b.Problem().Header}, mat.NewDense(k.Dim(), 1, nil)
	v.Apply(func(int, int, float64) float64 { return 1 }, v)
	for ctx.Err() == nil && len(r.Norms) < o.Steps {
		v.Scale(1/mat.Norm(v, 2), v)
		if err := k.KMulTo(ctx, v, v); err != nil {
			return r, err
		}
		r.Norms = append(r.Norms, mat.Norm(v, 2))
		b.Notify(ctx, stage.Event{Stage: "power method", Done: len(r.Norms), Total: o.Steps})
	}
	return r, ctx.Err()
}

// String returns the report, with a line on the last norm if there is one.
func (r *Norms) String() string {
	var b stage.Lines
	b.AddProblem(&r.Header)
	if products := len(r.Norms); products > 0 {
		b.Add("‖K‖₂", "at least %.4g after %d products", r.Norms[products-1], products)
	}
	return b.String()
}

// Table has one row for each product.
func (r *Norms) Table() *plots.Table {
	t := &plots.Table{Columns: []plots.Column{{Name: "‖K‖₂"}}}
	for _, v := range r.Norms {
		t.Add(v)
	}
	return t
}

// Plot shows the norms against the number of products.
func (r *Norms) Plot() *plots.Figure {
	s := plots.Series{Name: "‖K‖₂"}
	for i, v := range r.Norms {
		s.Add(float64(i+1), v)
	}
	return &plots.Figure{X: plots.Axis{Label: "products"}, Y: plots.Axis{Label: "‖K‖₂, at least"},
		Series: []plots.Series{s}}
}

// HTML returns the report, the figure and the table for a notebook.
func (r *Norms) HTML() string { return stage.HTML(r) }

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
	r, err := lab.Run(context.Background(), PowerMethod{})
	fmt.Println(err)
	fmt.Print(r)
	js, _ := json.Marshal(r)
	var loaded Norms
	fmt.Println(json.Unmarshal(js, &loaded), len(loaded.Norms), len(r.Table().Rows), r.Plot().Validate())
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
