package interval_test

import (
	"context"
	"fmt"
	"log"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
)

// A model of two points predicts a third one, with an interval by jackknife+.
func Example() {
	ctx := context.Background()
	m := &model.Model{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.5,
		X: points.NewDense(2, 1, []float64{-1, 1}), C: mat.NewDense(2, 1, []float64{-0.7, 0.7}),
		Origin: model.Origin{TrueResidual: new(0.0)}, // C solves the problem with the targets AC exactly
	}
	system, err := interval.NewFactoredSystem(ctx, m, accel.Budget{})
	if err != nil {
		log.Fatal(err)
	}
	queries := &datasets.Dataset{X: points.NewDense(1, 1, []float64{0.5})}
	p, err := m.Predict(ctx, queries, nil)
	if err != nil {
		log.Fatal(err)
	}
	intervals, err := interval.JackknifePlusIntervals(ctx, system, p, queries, 0.6)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("f = %.3f in [%.3f, %.3f]\n", p.Value[0], intervals.Lo.At(0, 0), intervals.Hi.At(0, 0))
	// Output:
	// f = 0.390 in [-1.248, 1.603]
}
