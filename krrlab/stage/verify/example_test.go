package verify_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage/verify"
)

// For two points at distance 1, the kernel matrix K has ones on its diagonal and e^(−1/2) ≈ 0.6065 off the diagonal.
// The residual of an answer c of (K+λI)c = y is computed, and κ(K+λI) = (1.6065+λ)/(0.3935+λ) is bounded, for λ = 0.4.
func Example() {
	x := points.NewDense(2, 1, []float64{0, 1})
	m, err := verify.New(context.Background(), nil, kernel.Spec{Name: "gaussian", Sigma: 1}, x, 1<<20, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, y := []float64{0.5, 0.5}, []float64{1, 1}
	v, rounding, err := m.Apply(context.Background(), c, 1, 0.4)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := m.Residual(v, rounding, c, y, 1, 0.4)
	s, err := m.Cond(context.Background(), 0.4, 3, rng.New(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("‖r‖/‖y‖ = %.4f, certain to 1e-12: %v\n", r.Norms[0]/r.TargetNorms[0],
		r.NormErrors[0]/r.TargetNorms[0] < 1e-12)
	fmt.Printf("κ in [%.3f, %.3f], at most %.0f\n", s.Cond.Lo, s.Cond.Hi, s.SimpleBound)
	// Output:
	// ‖r‖/‖y‖ = 0.0033, certain to 1e-12: true
	// κ in [2.529, 5.016], at most 6
}
