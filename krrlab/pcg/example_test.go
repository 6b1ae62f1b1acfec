package pcg_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/pcg"
)

// The residual has fallen to a tenth in the last four of eight iterations: to 10⁻³ it is as far again, and twice that.
func ExampleForecast() {
	low, mid, high := pcg.Forecast([]float64{1, 1, 1, 1, 1, 0.6, 0.3, 0.2, 0.1}, 1e-3)
	fmt.Printf("%.1f, between %.1f and %.1f iterations more\n", mid, low, high)
	// Output: 8.0, between 4.0 and 16.0 iterations more
}
