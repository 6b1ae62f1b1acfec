package npy_test

import (
	"bytes"
	"fmt"

	"github.com/krrlab/lab/krrlab/base/npy"
)

// Example writes a matrix and reads it back.
func Example() {
	var b bytes.Buffer
	if err := npy.Write(&b, []float64{1, 2, 3, 4, 5, 6}, 2, 3); err != nil {
		panic(err)
	}
	h, data, err := npy.Read(&b, 1<<20)
	fmt.Println(h.Shape, data, err)
	// Output: [2 3] [1 2 3 4 5 6] <nil>
}
