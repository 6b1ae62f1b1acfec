package pcg_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// ExampleRemainingIterations predicts the iterations to the residual 10⁻³. In the last four of eight iterations the
// residual fell to a tenth, so a reduction by 100 is expected to take eight more.
func ExampleRemainingIterations() {
	low, expected := pcg.RemainingIterations([]float64{1, 1, 1, 1, 1, 0.6, 0.3, 0.2, 0.1}, 1e-3)
	fmt.Printf("%.1f iterations more, at least %.1f\n", expected, low)
	// Output: 8.0 iterations more, at least 5.6
}
