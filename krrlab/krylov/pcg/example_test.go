package pcg_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// ExampleRemainingIterations predicts the iterations to the residual 10⁻³. The residual fell to a tenth in the last
// four of eight iterations, so twice as many are needed again.
func ExampleRemainingIterations() {
	low, mid := pcg.RemainingIterations([]float64{1, 1, 1, 1, 1, 0.6, 0.3, 0.2, 0.1}, 1e-3)
	fmt.Printf("%.1f iterations more, at least %.1f\n", mid, low)
	// Output: 8.0 iterations more, at least 5.6
}
