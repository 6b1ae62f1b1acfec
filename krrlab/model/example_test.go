package model_test

import (
	"context"
	"fmt"
	"log"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/points"
)

// A model made by hand: f(x) = 2k(0, x) − k(3, x) with a Gaussian kernel.
func ExampleModel_Decision() {
	m := &model.Model{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1,
		X: points.NewDense(2, 1, []float64{0, 3}), C: mat.NewDense(2, 1, []float64{2, -1}),
	}
	f, err := m.Decision(context.Background(), points.NewDense(2, 1, []float64{0, 3}), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.4f\n", mat.Formatted(f))
	// Output:
	// ⎡ 1.9889⎤
	// ⎣-0.9778⎦
}
