package solve_test

import (
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// K̃ is the stored kernel matrix, and StorageErrorBound is the largest ‖K̃ − K‖₂ that it may have. With λ = 0.01 and
// the tolerance τ = 1e-3, the bound is λ/10 = 0.001. If true residuals are computed with K in float64, which is
// affordable up to n²d = 5e11, an iteration with K̃ should be so accurate that it needs few corrections, and the bound
// is 20τλ = 0.0002.
func ExampleSystem_StorageErrorBound() {
	for _, n := range []int{1000, 1_000_000} {
		s := solve.System{
			Kernel: kernel.Gaussian{Sigma: 1}, Train: &datasets.Dataset{X: points.NewDense(n, 1, nil)},
			Lambda: 0.01, Tol: 1e-3, Policy: solve.DefaultPolicy,
		}
		fmt.Printf("n = %d: ‖E‖₂ ≤ %.2g; residuals in float64 from the start: %v\n", n, s.StorageErrorBound(),
			s.UsesExactResidual(nil)) // nil: no kernel matrix has been formed yet
	}
	// Output:
	// n = 1000: ‖E‖₂ ≤ 0.0002; residuals in float64 from the start: true
	// n = 1000000: ‖E‖₂ ≤ 0.001; residuals in float64 from the start: false
}
