package suite_test

import (
	"fmt"
	"os"

	"github.com/krrlab/lab/krrlab/base/suite"
)

// ExampleScale shows which size is used for each value of KRRLAB_LONG.
func ExampleScale() {
	defer os.Setenv("KRRLAB_LONG", os.Getenv("KRRLAB_LONG"))
	for _, value := range []string{"", "suite", "1"} {
		os.Setenv("KRRLAB_LONG", value)
		fmt.Println(suite.Scale(3, 10, 200))
	}
	// Output:
	// 3
	// 10
	// 200
}
