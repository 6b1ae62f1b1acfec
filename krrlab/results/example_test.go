package results_test

import (
	"encoding/json"
	"fmt"

	"github.com/krrlab/lab/krrlab/results"
)

// A result that was written as JSON is shown without its data.
func Example() {
	var s results.Solution
	err := json.Unmarshal([]byte(`{"dataset": "blobs", "n": 300, "status": "converged", "iterations": 12}`), &s)
	fmt.Println(s.Dataset, s.N, s.Status, s.Iterations, err)
	// Output: blobs 300 converged 12 <nil>
}
