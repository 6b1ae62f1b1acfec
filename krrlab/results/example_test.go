package results_test

import (
	"encoding/json"
	"fmt"

	"github.com/krrlab/lab/krrlab/results"
)

// A result that was written as JSON is shown without its data.
func Example() {
	var r results.LeaveOneOut
	err := json.Unmarshal([]byte(`{"dataset": "blobs", "n": 300, "best": 1}`), &r)
	fmt.Println(r.Dataset, r.N, r.Best, err)
	// Output: blobs 300 1 <nil>
}
