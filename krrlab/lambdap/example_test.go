package lambdap_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/lambdap"
)

// What η alone says of λ_p: best at λ+η, and the same a little to both sides.
func ExampleBound() {
	const lambda, eta = 0.01, 1.0
	for _, lambdaP := range []float64{lambda, 10 * lambda, lambda + eta, 10} {
		fmt.Printf("λ_p = %-5g κ ≤ %.4g\n", lambdaP, lambdap.Bound(lambda, lambdaP, eta))
	}
	// Output:
	// λ_p = 0.01  κ ≤ 1.02e+04
	// λ_p = 0.1   κ ≤ 1111
	// λ_p = 1.01  κ ≤ 201
	// λ_p = 10    κ ≤ 1100
}
