package buffer_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// This example grows one buffer to several lengths: it is allocated again only if a length exceeds its capacity.
func Example() {
	var buf []float64
	for _, n := range []int{3, 2, 5} {
		row := buffer.Grow(&buf, n)
		fmt.Println(len(row), len(buf), cap(buf))
	}
	// Output:
	// 3 3 3
	// 2 2 3
	// 5 5 5
}
