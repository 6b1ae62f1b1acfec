package testbed_test

import (
	"fmt"
	"strings"

	"github.com/krrlab/lab/experiments/testbed"
)

// Some problems of the testbed need no file.
func Example() {
	for _, p := range testbed.Problems() {
		if strings.Contains(p.Source, "scaled: ") { // the problem needs a data set
			continue
		}
		fmt.Println(p.Name, p.Kernel, p.Lambda)
	}
	// Output:
	// curve gaussian(sigma=0.5) 0.001
	// clusters gaussian(sigma=1) 0.001
	// pairs gaussian(sigma=1) 1e-05
	// grid gaussian(sigma=0.03) 0.001
	// plane gaussian(sigma=0.1) 0.01
	// noise gaussian(sigma=2) 0.01
}
