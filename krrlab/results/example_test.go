package results_test

import (
	"encoding/json"
	"fmt"

	"github.com/krrlab/lab/krrlab/results"
)

// A result that was written as JSON is shown without its data.
func Example() {
	var s results.StatDim
	err := json.Unmarshal([]byte(`{
		"dataset": "blobs", "task": "classification", "n": 300, "d": 2, "t": 1, "lambda": 0.1, "kernel": {"name": "gaussian", "sigma": 2},
		"method": "exact", "width_asked": 0.1, "width_reached": true, "seconds": 0.02,
		"estimate": {"value": 41.25, "lo": 41.2, "hi": 41.3, "confidence": 1, "method": "exact"}}`), &s)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(&s)
	// Output:
	// data           blobs: classification, n = 300, d = 2, t = 1
	// problem        kernel gaussian(sigma=2), λ = 0.1
	// method         exact
	// s_λ(K)         41.25 at λ = 0.1
	// interval       [41.2, 41.3], certain up to rounding, width 0.24 % of the value
	// milliseconds   20.0
}
