package results_test

import (
	"encoding/json"
	"fmt"

	"github.com/krrlab/lab/krrlab/results"
)

// A result that was written as JSON is shown without its data.
func Example() {
	var s results.MultiLevel
	err := json.Unmarshal([]byte(`{"dataset": "blobs", "n": 300}`), &s)
	fmt.Println(s.Dataset, s.N, err)
	// Output: blobs 300 <nil>
}
