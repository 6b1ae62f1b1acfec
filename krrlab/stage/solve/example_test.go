package solve_test

import (
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// The storage error that a tolerance allows follows from the true residual up to n²d = 5e11, and is λ/10 beyond that.
func ExampleSystem_StorageErrorBound() {
	for _, n := range []int{1000, 1_000_000} {
		s := solve.System{
			Kernel: kernel.Gaussian{Sigma: 1}, Train: &datasets.Dataset{X: points.NewDense(n, 1, nil)},
			Lambda: 0.01, Tol: 1e-3, Policy: solve.Default,
		}
		fmt.Printf("n = %d: ‖E‖₂ ≤ %.2g; residuals in float64 from the start: %v\n", n, s.StorageErrorBound(),
			s.UsesExactResidual(nil))
	}
	// Output:
	// n = 1000: ‖E‖₂ ≤ 0.0002; residuals in float64 from the start: true
	// n = 1000000: ‖E‖₂ ≤ 0.001; residuals in float64 from the start: false
}
