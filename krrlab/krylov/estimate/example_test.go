package estimate_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

func ExampleInterval() {
	kappa := estimate.Interval{Value: 12.3, Lo: 11.9, Hi: 13, Confidence: 0.95, Method: "Lanczos"}
	fmt.Println(kappa.Contains(12), kappa.Contains(14))
	// Output: true false
}
