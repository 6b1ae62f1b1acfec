package fourier_test

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Example fits 20,000 points in the plane with about two thousand modes.
func Example() {
	const n, lambda = 20_000, 0.1
	ctx, x, y := context.Background(), points.NewDense(n, 2, nil), mat.NewDense(n, 1, nil)
	rng.New(1).Float64s(x.Data, 0)
	for i := range n {
		y.Set(i, 0, math.Sin(5*x.Row(i)[0])*x.Row(i)[1])
	}
	s, err := fourier.New(kernel.Gaussian{Sigma: 0.1}, fourier.Options{}, x)
	if err != nil {
		fmt.Println(err)
		return
	}
	normal, b, _ := s.NormalEquations(ctx, x, nil, y)
	factor, _ := normal.Factor(ctx, lambda)
	beta, _, _ := factor.Solve(ctx, b, 0)
	f, _ := s.Eval(ctx, points.NewDense(1, 2, []float64{0.3, 0.5}), beta)
	fmt.Printf("f = %.3f, expected %.3f; ‖K̃−K‖₂ ≤ %.0e: %v\n", f.At(0, 0), math.Sin(1.5)*0.5, 1e-8,
		n*s.EntryError() < 1e-8)
	// Output:
	// f = 0.499, expected 0.499; ‖K̃−K‖₂ ≤ 1e-08: true
}
