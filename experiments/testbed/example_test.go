package testbed_test

import (
	"fmt"

	"github.com/krrlab/lab/experiments/testbed"
)

// The problems that need no file.
func Example() {
	all := testbed.Problems()
	for _, p := range all[len(all)-5:] {
		fmt.Println(p.Name, p.Kernel, p.Lambda)
	}
	// Output:
	// curve gaussian(sigma=0.5) 0.001
	// clusters gaussian(sigma=1) 0.001
	// pairs gaussian(sigma=1) 1e-05
	// grid gaussian(sigma=0.03) 0.001
	// noise gaussian(sigma=2) 0.01
}
